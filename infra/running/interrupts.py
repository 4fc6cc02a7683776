"""Interrupt handling: Ctrl-C ends a run promptly and reliably."""

import signal
from types import FrameType

from schemas.errors import ConflictError

_came: list[int] = []
"""Signals that arrived."""

_reasons: list[str] = []
"""Reasons why the work has to end."""


def handle_interrupts() -> None:
    """Install a handler that records SIGINT and raises it: Python drops exceptions raised inside a destructor."""
    signal.signal(signal.SIGINT, _interrupt)


def request_stop(reason: str) -> None:
    """Request that the work ends with an error at its next call of `stop_if_requested`; for use in other threads."""
    _reasons.append(reason)


def stop_if_requested() -> None:
    """Raise a lost interrupt again, or the error that another thread requested; long work calls this regularly.

    Raises:
        KeyboardInterrupt: an interrupt arrived.
        ConflictError: another thread requested a stop.
    """
    if _came:
        raise KeyboardInterrupt
    if _reasons:
        raise ConflictError(_reasons.pop())


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _came.append(number)
    raise KeyboardInterrupt
