"""Memory that is free goes back to the system."""

import ctypes
import time
from contextlib import suppress

_EVERY_S = 30.0
"""It takes up to a tenth of a second."""
_last_s = [0.0]


def release_free_memory() -> None:
    """Let the C library return what was freed, where it can be asked to, and was not just now.

    glibc keeps the holes that tensors of many sizes leave: twenty rounds held 7 GB of which 2 were in use.
    """
    if time.monotonic() - _last_s[0] < _EVERY_S:
        return
    _last_s[0] = time.monotonic()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
