"""Streams of engines that are sent whole with each request; see the port TokenStreams."""

from collections.abc import Mapping, Sequence

from schemas.sampling import Sampled


class HeldStreams:
    """Token ids of streams, one list per row."""

    def __init__(self, num_rows: int) -> None:
        """Create empty streams."""
        self._ids: list[list[int]] = [[] for _ in range(num_rows)]
        self.num_prefilled = 0
        self.num_sampled = 0

    def restart(self, row: int) -> None:
        """Clear a row's stream."""
        self._ids[row] = []

    def length(self, row: int) -> int:
        """Return the number of ids in a row's stream so far."""
        return len(self._ids[row])

    def extend(self, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
        """Append given ids to the streams."""
        for row, new in zip(rows, ids, strict=True):
            self._ids[row].extend(new)
            self.num_prefilled += len(new)

    def _append(self, sampled: Mapping[int, Sampled]) -> None:
        """Append what was sampled, by row."""
        for row, one in sampled.items():
            self._ids[row].extend(one.ids)
            self.num_sampled += len(one.ids)
