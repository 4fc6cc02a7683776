"""Files that only their owner may read."""

import os
from pathlib import Path

from infra.files.durable_files import write_durably
from schemas.errors import InputError

_OTHERS = 0o077


def write_privately(path: Path, text: str) -> None:
    """Write or replace a file with mode 600."""
    write_durably(path, text.encode())  # by way of a temporary file, which is private from its first byte
    path.chmod(0o600)


def read_privately(path: Path) -> str:
    """Return the text of a file that no other user can have read or written.

    Raises:
        InputError: other users may read or write the file, or own it.
    """
    status = path.stat()
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
        raise InputError(
            f"{path} holds passwords, but others can read it: chown it to yourself and chmod 600, or remove it"
        )
    return path.read_text()
