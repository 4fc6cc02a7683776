"""Ctrl-C ends a run at once and for certain."""

import signal
from types import FrameType

from schemas.errors import ConflictError

_came: list[int] = []
"""Signals that arrived."""

_reasons: list[str] = []
"""Why the work has to end."""


def handle_interrupts() -> None:
    """Remember an interrupt as well as raising it: Python drops what is raised inside a destructor."""
    signal.signal(signal.SIGINT, _interrupt)


def request_stop(reason: str) -> None:
    """Let the work end with an error at its next moment of attention; for threads that found a reason."""
    _reasons.append(reason)


def stop_if_requested() -> None:
    """Raise again an interrupt that was lost, or what a thread asked for; for work to call now and then.

    Raises:
        ConflictError: a thread found a reason to stop.
    """
    if _came:
        raise KeyboardInterrupt
    if _reasons:
        raise ConflictError(_reasons.pop())


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _came.append(number)
    raise KeyboardInterrupt
