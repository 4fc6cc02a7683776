"""Waiting for what takes a while on a busy machine."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], patience_s: float, told: Callable[[], object] = lambda: "") -> None:
    """Wait until something holds; fail with what is told if it does not within the time."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, told()
        time.sleep(0.2)
