"""Work that is begun ahead of its turn: one piece after another, beside what its taker does."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Generic, Self, TypeVar

Made = TypeVar("Made")


class Prefetcher(Generic[Made]):
    """Takes pieces of work in order, and hands out what they made in the same order."""

    def __init__(self, *, beside: bool) -> None:
        """Nothing is begun yet.

        Args:
            beside: Work in a thread, from the moment that a piece is begun; else when it is taken.
        """
        self._thread = ThreadPoolExecutor(1) if beside else None
        self._begun: deque[Callable[[], Made]] = deque()
        self.num_begun = 0

    def begin(self, work: Callable[[], Made]) -> None:
        """Begin a piece, or let it wait for those before."""
        self.num_begun += 1
        self._begun.append(self._thread.submit(copy_context().run, work).result if self._thread else work)

    def take(self) -> Made:
        """What the oldest piece made that nobody took yet; its error, if it failed."""
        return self._begun.popleft()()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Drop what has not begun, and wait for what is under way: it will be stored."""
        if self._thread:
            self._thread.shutdown(cancel_futures=True)
