"""Prefetching: run pieces of work in the background, in order, before their results are needed."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Generic, Self, TypeVar

Made = TypeVar("Made")


class Prefetcher(Generic[Made]):
    """Queue that runs pieces of work in order and returns their results in the same order."""

    def __init__(self, *, concurrent: bool) -> None:
        """Create an empty queue.

        Args:
            concurrent: Run each piece in a background thread as soon as it is begun; else when its result is taken.
        """
        self._thread = ThreadPoolExecutor(1) if concurrent else None
        self._begun: deque[Callable[[], Made]] = deque()
        self.num_begun = 0

    def begin(self, work: Callable[[], Made]) -> None:
        """Begin a piece, or queue it behind earlier ones."""
        self.num_begun += 1
        self._begun.append(self._thread.submit(copy_context().run, work).result if self._thread else work)

    def take(self) -> Made:
        """Return the result of the oldest piece that was not taken yet, or raise its error."""
        return self._begun.popleft()()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Drop pieces that have not begun, and wait for the one in progress, whose result will be stored."""
        if self._thread:
            self._thread.shutdown(cancel_futures=True)
