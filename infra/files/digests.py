"""Digests of files of any size."""

import hashlib
from pathlib import Path


def sha256_of(file: Path) -> str:
    """Return the sha256 of a file's content, read in parts."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
