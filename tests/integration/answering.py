"""Functions for tests of calls in processes; a process that answers them imports this module."""

import os
import time
from pathlib import Path

from schemas.errors import DataError


def answer(payload: bytes) -> bytes:
    """Return the payload with the id of this process; or do what it asks for."""
    asked = payload.decode()
    if asked == "die":
        os._exit(7)
    if asked == "refuse":
        raise DataError("no such rows")
    if asked == "fail":
        raise ZeroDivisionError("by nothing")
    if asked.startswith("touch "):
        Path(asked.removeprefix("touch ")).touch()
        time.sleep(3600)
    if asked == "threads":
        return " ".join(os.environ[name] for name in ("DREAMGYM_NUM_THREADS", "OMP_NUM_THREADS")).encode()
    return f"{asked} {os.getpid()}".encode()
