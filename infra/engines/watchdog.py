"""Watchdog over a request to a server: it waits as long as the server makes progress, and no longer."""

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
    """Send a request and return its answer; abort the server if it makes no progress.

    Args:
        ask: Sends the request; must raise once the server is gone.
        heartbeat: Returns a text that changes whenever the server has made progress.
        abort: Ends the server.
        silence_s: Seconds without a heartbeat before the server is aborted.
    """
    asked: Future[Answer] = Future()
    Thread(target=_answered, args=(asked, ask), daemon=True).start()  # a daemon: an interrupt does not wait for it
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
    """Return the heartbeat; empty if the server cannot be reached."""
    try:
        return heartbeat()
    except httpx.TransportError:
        return ""
