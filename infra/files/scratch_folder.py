"""Temporary folders that outlive nobody: what a killed process left is removed by the next that needs such a folder."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

_IN_USE = "in-use.lock"
"""File that a process keeps locked in its folder. The system unlocks it when the process ends, however it does."""


@contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """Yield a folder of this process, and remove it afterwards; first remove those that killed processes left.

    Args:
        purpose: Word in the folder's name. Only folders of the same purpose and user are looked at.
    """
    place, prefix = Path(tempfile.gettempdir()), f"dreamgym-{purpose}-{os.getuid()}-"
    with FileLock(place / f"{prefix[:-1]}.lock"):  # a folder that is not locked yet must not seem abandoned
        _remove_abandoned(place, prefix)
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        in_use = FileLock(folder / _IN_USE)
        in_use.acquire()
    try:
        yield folder
    finally:
        in_use.release()
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(place: Path, prefix: str) -> None:
    for folder in place.glob(f"{prefix}*"):
        with suppress(Timeout), FileLock(folder / _IN_USE, timeout=0):
            shutil.rmtree(folder, ignore_errors=True)
