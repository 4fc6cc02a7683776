"""Ctrl-C ends a run at once and for certain, and leaves the servers that its end is told to alone."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from schemas.errors import Overtaken

_came: list[int] = []
"""Signals that arrived."""

_reasons: list[str] = []
"""Why the work has to end."""


def heed_interrupts() -> None:
    """Remember an interrupt as well as raising it: Python drops what is raised inside a destructor."""
    signal.signal(signal.SIGINT, _interrupt)


def stop_soon(reason: str) -> None:
    """Let the work end with an error at its next moment of attention; for threads that found a reason."""
    _reasons.append(reason)


def stop_if_interrupted() -> None:
    """Raise again an interrupt that was lost, or what a thread asked for; for work to call now and then.

    Raises:
        Overtaken: a thread found a reason to stop.
    """
    if _came:
        raise KeyboardInterrupt
    if _reasons:
        raise Overtaken(_reasons.pop())


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
