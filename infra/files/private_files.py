"""Files that only their owner may read."""

import os
from pathlib import Path

from infra.files.durable_files import write_durably
from schemas.errors import InputError

_OTHERS = 0o077


def write_privately(path: Path, text: str) -> None:
    """Write or replace a file of mode 600."""
    write_durably(path, text.encode())  # a temporary file, which is private from its first byte, moved into place
    path.chmod(0o600)


def read_privately(path: Path) -> str:
    """Text of a file that nobody else can have read or written.

    Raises:
        InputError: others may read or write it, or it belongs to somebody else.
    """
    status = path.stat()
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
        raise InputError(
            f"{path} holds passwords, but it is not yours alone: chown it to you and chmod 600, or remove it"
        )
    return path.read_text()
