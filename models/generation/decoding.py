"""Decoding: continuations of rows, token by token, until each has ended.

Shapes: R rows, E hidden size.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import torch
from torch import Tensor

from models.generation.cache import Cache, advance
from models.generation.draws import draw
from models.network.transformer import Weights, logits_of
from schemas.sampling import Sampling

_COMPACT_BELOW = 0.7
"""Share of rows still sampling below which the batch is compacted."""


class Decoder(Protocol):
    """Sampler of continuations for one network."""

    def decode(self, cache: Cache, rows_R: Tensor, hidden_RE: Tensor, sampling: Sampling) -> "Continuations":
        """Sample a continuation of each row up to the end token or the token limit.

        Args:
            cache: Cache of all rows, which stays as it is.
            rows_R: Rows to continue, on the CPU.
            hidden_RE: Hidden states that predict the first tokens.
            sampling: Limit, end token, temperature and nucleus.
        """
        ...


class Continuations:
    """Sampled tokens of a batch of rows, which rows leave once they have ended."""

    def __init__(self, num_rows: int, end_ids: Collection[int]) -> None:
        """Begin with nothing sampled."""
        self.ids: list[list[int]] = [[] for _ in range(num_rows)]
        self.logprobs: list[list[float]] = [[] for _ in range(num_rows)]
        self._end_ids = end_ids
        self._owners = list(range(num_rows))
        self._open = set(self._owners)

    def append(self, ids: Sequence[int], logprobs: Sequence[float]) -> None:
        """Append a token to each row of the batch that has not ended."""
        for owner, token, logprob in zip(self._owners, ids, logprobs, strict=True):
            if owner in self._open:
                self.ids[owner].append(token)
                self.logprobs[owner].append(logprob)
                if token in self._end_ids:
                    self._open.discard(owner)

    @property
    def num_open(self) -> int:
        """Number of rows that have not ended."""
        return len(self._open)

    @property
    def batch_size(self) -> int:
        """Number of rows in the batch."""
        return len(self._owners)

    @property
    def open_share(self) -> float:
        """Share of the batch that has not ended."""
        return len(self._open) / len(self._owners)

    def drop_ended(self) -> list[int]:
        """Let rows that have ended leave the batch; return the places of the others in it."""
        kept = [place for place, owner in enumerate(self._owners) if owner in self._open]
        self._owners = [self._owners[place] for place in kept]
        return kept


class Rows(Protocol):
    """Rows that are continued together, by any network."""

    def logits(self) -> Tensor:
        """Return the logits of each row's next token, [R, V]."""
        ...

    def append(self, ids_R: Tensor) -> None:
        """Append a token to each row."""
        ...

    def keep(self, places: Sequence[int]) -> None:
        """Keep the rows at these places, in this order, and drop the others."""
        ...


def continued(rows: Rows, num_rows: int, sampling: Sampling, generator: torch.Generator) -> Continuations:
    """Sample a continuation of each row, looking at each token before the next; rows that have ended leave the batch.

    Args:
        rows: Rows to continue, which are changed.
        num_rows: Number of rows.
        sampling: Limit, end token, temperature and nucleus.
        generator: Source of randomness.
    """
    found = Continuations(num_rows, sampling.end_ids)
    for num_left in reversed(range(sampling.max_new_tokens)):
        ids_R, logprobs_R = draw(rows.logits(), sampling, generator)
        found.append(ids_R.tolist(), logprobs_R.tolist())
        if not (found.num_open and num_left):
            break
        if found.open_share < _COMPACT_BELOW:
            kept = found.drop_ended()
            rows.keep(kept)
            ids_R = ids_R[kept]
        rows.append(ids_R)
    return found


class _CachedRows:
    """Rows of a cache of our own forward pass; see `Rows`."""

    def __init__(self, weights: Weights, cache: Cache, hidden_RE: Tensor, num_more: int) -> None:
        self._weights, self._cache, self._hidden_RE, self._num_more = weights, cache, hidden_RE, num_more

    def logits(self) -> Tensor:
        return logits_of(self._weights, self._hidden_RE)

    def append(self, ids_R: Tensor) -> None:
        self._hidden_RE = advance(self._weights, self._cache, ids_R[:, None])
        self._cache.lengths_R += 1
        self._num_more -= 1

    def keep(self, places: Sequence[int]) -> None:
        self._cache = self._cache.rows(torch.tensor(places), self._num_more)


class StepwiseDecoder:
    """Decoder that looks at each token before the next; see `Decoder`."""

    def __init__(self, weights: Weights, generator: torch.Generator) -> None:
        """Create a decoder whose draws come from one source of randomness."""
        self._weights, self._generator = weights, generator

    @torch.inference_mode()
    def decode(self, cache: Cache, rows_R: Tensor, hidden_RE: Tensor, sampling: Sampling) -> Continuations:
        """Sample continuations; see `Decoder.decode`."""
        num_more = sampling.max_new_tokens
        rows = _CachedRows(self._weights, cache.rows(rows_R, num_more), hidden_RE, num_more)
        return continued(rows, len(rows_R), sampling, self._generator)
