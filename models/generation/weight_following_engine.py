"""An engine that moves to newer weights between two turns, with all running episodes.

Streams are recomputed with the newer weights, because the older cache does not fit them. Sampled tokens stay, with the
log-probabilities and the weight version that they were sampled with (AReaL, arXiv 2505.24298).
"""

from collections.abc import Callable, Sequence

from schemas.ports import Engine, TokenStreams
from schemas.sampling import Sampled, Sampling

Newest = Callable[[], Engine]
"""Function that returns the engine to sample from now; the same object as long as its weights are the newest."""


class LiveWeightsEngine:
    """Engine that follows the newest weights; see `schemas.ports.Engine`."""

    batches_requests = False  # the weights of all rows change at once

    def __init__(self, newest: Newest) -> None:
        """Create an engine that looks for newer weights before each turn."""
        self._newest = newest

    def open(self, num_rows: int, capacity: int = 256) -> "FollowingStreams":
        """Open empty streams."""
        return FollowingStreams(self._newest, num_rows, capacity)


class FollowingStreams:
    """Token streams that follow the newest weights; see `schemas.ports.TokenStreams`."""

    def __init__(self, newest: Newest, num_rows: int, capacity: int) -> None:
        """Create empty streams on the newest engine."""
        self._newest, self._capacity = newest, capacity
        self._ids: list[list[int]] = [[] for _ in range(num_rows)]
        self._engine = newest()
        self._streams = self._opened()
        self._behind: set[int] = set()
        """Rows whose earlier tokens the newest engine has not seen."""
        self._num_prefilled = self._num_sampled = 0

    def _opened(self) -> TokenStreams:
        return self._engine.open(len(self._ids), self._capacity)

    @property
    def num_prefilled(self) -> int:
        """Number of tokens from outside so far, plus those that were recomputed."""
        return self._num_prefilled + self._streams.num_prefilled

    @property
    def num_sampled(self) -> int:
        """Number of tokens sampled so far."""
        return self._num_sampled + self._streams.num_sampled

    def restart(self, row: int) -> None:
        """Clear a row's stream."""
        self._ids[row] = []
        self._behind.discard(row)
        self._streams.restart(row)

    def length(self, row: int) -> int:
        """Return the number of tokens in a row's stream."""
        return len(self._ids[row])

    def extend(self, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
        """Append tokens from outside, after moving to newer weights if there are any."""
        if (newest := self._newest()) is not self._engine:
            self._move_on(newest)
        for row, new in zip(rows, ids, strict=True):
            self._ids[row].extend(new)
        unseen = [self._ids[row] if row in self._behind else new for row, new in zip(rows, ids, strict=True)]
        self._streams.extend(rows, unseen)
        self._behind.difference_update(rows)

    def _move_on(self, newest: Engine) -> None:
        self._num_prefilled, self._num_sampled = self.num_prefilled, self.num_sampled
        self._engine = newest
        self._streams = self._opened()
        self._behind = {row for row, ids in enumerate(self._ids) if ids}

    def generate(self, rows: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each row."""
        sampled = self._streams.generate(rows, sampling)
        for row, one in zip(rows, sampled, strict=True):
            self._ids[row].extend(one.ids)
        return sampled
