"""Ctrl-C ends a run at once and for certain, and leaves the servers that its end is told to alone."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_came: list[int] = []
"""Signals that arrived."""


def heed_interrupts() -> None:
    """Remember an interrupt as well as raising it: Python drops what is raised inside a destructor."""
    signal.signal(signal.SIGINT, _interrupt)


def stop_if_interrupted() -> None:
    """Raise again an interrupt that was lost; for work to call now and then."""
    if _came:
        raise KeyboardInterrupt


@contextmanager
def children_deaf_to_interrupts() -> Iterator[None]:
    """Processes started within never get SIGINT: a terminal sends Ctrl-C to all, and we end ours ourselves."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _came.append(number)
    raise KeyboardInterrupt
