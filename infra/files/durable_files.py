"""Atomic file writes: a file is complete or absent, even after a crash."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

_PIECE_BYTES = 2**20
_PRIVATE = 0o600
"""Mode of files that were not moved: tempfile makes them."""


def write_durably(path: Path, content: bytes) -> None:
    """Write a file, or replace it."""
    with _on_disk(path, BytesIO(content)) as temporary:
        os.replace(temporary, path)


def move_durably(file: Path, path: Path) -> None:
    """Move a file to a path, or replace what is there; it is copied in pieces if the two are on different disks."""
    with file.open("rb") as content:
        os.fchmod(content.fileno(), _PRIVATE)
        os.fsync(content.fileno())
        try:
            os.replace(file, path)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            with _on_disk(path, content) as temporary:
                os.replace(temporary, path)
            file.unlink()


def create_durably(path: Path, content: bytes) -> bool:
    """Create a file unless it exists; return False, and change nothing, if it does."""
    with _on_disk(path, BytesIO(content)) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
    return True


@contextmanager
def _on_disk(path: Path, content: BinaryIO) -> Iterator[Path]:
    """Yield a temporary file next to the path with the content, synchronised; it is removed afterwards."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(content, file, _PIECE_BYTES)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
