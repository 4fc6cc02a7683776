"""Atomic file writes: a file is complete or absent, even after a crash."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_durably(path: Path, content: bytes) -> None:
    """Write a file, or replace it."""
    with _on_disk(path, content) as temporary:
        os.replace(temporary, path)


def create_durably(path: Path, content: bytes) -> bool:
    """Create a file unless it exists; return False, and change nothing, if it does."""
    with _on_disk(path, content) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
    return True


@contextmanager
def _on_disk(path: Path, content: bytes) -> Iterator[Path]:
    """Yield a temporary file next to the path with the content, synchronised; it is removed afterwards."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
