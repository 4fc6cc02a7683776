"""Interrupt handling: Ctrl-C ends a run promptly and reliably."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

from schemas.errors import ConflictError

_came: list[int] = []
"""Signals that arrived."""

_deferring: list[object] = []
"""Work under way that an interrupt must not cut in two."""

_reasons: list[str] = []
"""Reasons why the work has to end."""


def handle_interrupts() -> None:
    """Install a handler that records SIGINT and raises it: Python drops exceptions raised inside a destructor.

    Threads other than the main one receive no signals and cannot install a handler.
    """
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, _interrupt)


@contextmanager
def restored_interrupts() -> Iterator[None]:
    """Restore the earlier handler afterwards, and forget what stopped this work: a notebook goes on to other work."""
    earlier = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if current_thread() is main_thread():
            signal.signal(signal.SIGINT, earlier or signal.SIG_DFL)
        _came.clear()
        _reasons.clear()


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Raise an interrupt that arrives meanwhile at the end.

    For short calls of a database in the main thread: one that is cut in two keeps the database locked for this process,
    and rows that nobody knows of.
    """
    _deferring.append(None)
    try:
        yield
    finally:
        _deferring.pop()
    stop_if_requested()


def ends_by_interrupt(error: BaseException) -> bool:
    """Return whether an error ends work because of an interrupt, which a library may turn into an error of its own."""
    return bool(_came) or not isinstance(error, Exception)


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
    if not _deferring:
        raise KeyboardInterrupt
