"""A watchdog over a question to a server: it waits as long as the server works, and no longer."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

import httpx

Answer = TypeVar("Answer")
_LOOKS_PER_SILENCE = 10


def watched(
    ask: Callable[[], Answer], heartbeat: Callable[[], str], abort: Callable[[], None], silence_s: float
) -> Answer:
    """What a question is answered with.

    Args:
        ask: Asks it, and ends with an error once the server is gone.
        heartbeat: Something that differs from the last time if the server did anything since.
        abort: Ends a server.
        silence_s: How long it may show no heartbeat before it is aborted.
    """
    asked: Future[Answer] = Future()
    Thread(target=_answered, args=(asked, ask), daemon=True).start()  # nobody who is interrupted waits for it
    seen, since = "", time.monotonic()
    while True:
        try:
            return asked.result(timeout=silence_s / _LOOKS_PER_SILENCE)
        except TimeoutError:
            if asked.done():
                raise
        if (now := _looked(heartbeat)) not in ("", seen):
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > silence_s:
            abort()
            return asked.result()


def _answered(asked: "Future[Answer]", ask: Callable[[], Answer]) -> None:
    try:
        asked.set_result(ask())
    except BaseException as error:
        asked.set_exception(error)


def _looked(heartbeat: Callable[[], str]) -> str:
    """Empty if nothing is to be seen."""
    try:
        return heartbeat()
    except httpx.TransportError:
        return ""
