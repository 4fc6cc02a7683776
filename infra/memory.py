"""Memory that is free goes back to the system."""

import ctypes
from contextlib import suppress


def give_back() -> None:
    """Let the C library return what was freed, where it can be asked to.

    glibc keeps the holes that tensors of many sizes leave: twenty rounds held 7 GB of which 2 were in use.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
