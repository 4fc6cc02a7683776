"""Options for sampling tokens, the result, and streams of tokens that are held as lists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling options."""

    max_new_tokens: int
    end_ids: tuple[int, ...]
    """Tokens that end sampling; without any, only the limit does."""
    temperature: float = 1.0
    """Sampling temperature; 0 is greedy."""
    top_p: float = 1.0
    """Nucleus sampling: only the most likely tokens that together reach this probability (arXiv 1904.09751,
    section 3.1). Never for training data: a trainer does not know which tokens were left out."""

    def room(self, length: int, max_tokens: int | None) -> int:
        """Return the number of tokens that may be sampled in a stream; 0 if it is full.

        Args:
            length: Number of tokens in the stream.
            max_tokens: Maximum number of tokens of a stream; None: no limit.
        """
        return self.max_new_tokens if max_tokens is None else max(0, min(self.max_new_tokens, max_tokens - length))


@dataclass(frozen=True, slots=True)
class Sampled:
    """Sampled tokens of one row, with their log-probabilities under the sampling distribution; 0 if greedy."""

    ids: list[int]
    logprobs: list[float]
    ended: bool
    """True if an end token was reached; False if cut off at max_new_tokens."""
    weight_version: str = ""
    """Digest of the weights that sampled it."""
    out_of_room: bool = False
    """True if the stream was full before an end token and before max_new_tokens. Without ids, its prompt filled it."""

    @property
    def content(self) -> list[int]:
        """Sampled tokens without the end token, which cut-off ones do not have."""
        return self.ids[:-1] if self.ended else self.ids

    def within(self, room: int) -> "Sampled":
        """Return the part of it that fits into a stream.

        Args:
            room: Number of tokens that the stream has left.
        """
        if len(self.ids) <= room:
            return self
        return replace(self, ids=self.ids[:room], logprobs=self.logprobs[:room], ended=False, out_of_room=True)


class HeldStreams:
    """Token ids of streams that are computed as a whole whenever they go on, one list per row; see the port TokenStreams."""

    def __init__(self, num_rows: int) -> None:
        """Create empty streams; `ids` are those of each row."""
        self.ids: list[list[int]] = [[] for _ in range(num_rows)]
        self.num_prefilled = 0
        self.num_sampled = 0

    def restart(self, row: int) -> None:
        """Clear a row's stream."""
        self.ids[row] = []

    def length(self, row: int) -> int:
        """Return the number of ids in a row's stream so far."""
        return len(self.ids[row])

    def extend(self, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
        """Append given ids to the streams."""
        for row, new in zip(rows, ids, strict=True):
            self.ids[row].extend(new)
            self.num_prefilled += len(new)

    def append(self, sampled: Mapping[int, Sampled]) -> None:
        """Append what was sampled, by row."""
        for row, one in sampled.items():
            self.ids[row].extend(one.ids)
            self.num_sampled += len(one.ids)
