"""Texts that take long to make, kept in a folder for all processes and runs."""

import hashlib
import json
import zlib
from contextlib import suppress
from pathlib import Path

from infra.files.durable_files import write_durably


class KeptTexts:
    """Folder of compressed texts, each under the digest of all that it is made of."""

    def __init__(self, folder: Path) -> None:
        """Keep texts in a folder, which is made with the first one."""
        self._folder = folder

    def find(self, *made_of: str) -> str | None:
        """Return a text, given all that it is made of; None if it was not kept, or its file is damaged."""
        try:
            return zlib.decompress(self._file(made_of).read_bytes()).decode()
        except (OSError, zlib.error, UnicodeDecodeError):
            return None

    def keep(self, text: str, *made_of: str) -> None:
        """Write a text, unless the disk is full or must not be written: it can be made again."""
        file = self._file(made_of)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_durably(file, zlib.compress(text.encode()))

    def _file(self, made_of: tuple[str, ...]) -> Path:
        digest = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
        return self._folder / f"{digest}.z"
