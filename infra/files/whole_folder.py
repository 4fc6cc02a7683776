"""A folder that is written whole or not at all."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from schemas.errors import InputError


def require_empty(folder: Path) -> None:
    """Refuse to write over anything.

    Raises:
        InputError: something is there already.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder that is new or empty")
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty, and nothing in it was touched: name a folder that is new or empty")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder beside, to be filled, which takes the place of this new or empty one at the end.

    Raises:
        InputError: this one is not empty.
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
