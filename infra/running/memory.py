"""Return of freed memory to the operating system."""

import ctypes
import time
from contextlib import suppress

_EVERY_S = 30.0
"""Minimum number of seconds between two calls; each takes up to a tenth of a second."""
_last_s = [0.0]


def release_free_memory() -> None:
    """Return freed memory to the system, at most every 30 seconds and only where the C library is glibc.

    glibc keeps the gaps that tensors of many sizes leave: twenty rounds held 7 GB, of which 2 GB were in use.
    """
    if time.monotonic() - _last_s[0] < _EVERY_S:
        return
    _last_s[0] = time.monotonic()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
