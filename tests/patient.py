"""Waiting for conditions that take a while on a busy machine."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], patience_s: float, told: Callable[[], object] = lambda: "") -> None:
    """Wait until a condition holds; fail with the given message if it does not within `patience_s` seconds."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, told()
        time.sleep(0.2)
