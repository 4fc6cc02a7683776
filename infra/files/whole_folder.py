"""Atomic creation of a folder: it is complete or absent."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from schemas.errors import InputError


def require_empty(folder: Path) -> None:
    """Check that a folder is absent or empty, so that nothing is overwritten.

    Raises:
        InputError: the folder is not empty, or is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder that is new or empty")
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty, and nothing in it was touched: name a folder that is new or empty")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill, which is renamed to `folder` if the block succeeds.

    Raises:
        InputError: `folder` is not empty.
    """
    require_empty(folder)
    target = folder.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
    partial.mkdir()
    try:
        yield partial
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
