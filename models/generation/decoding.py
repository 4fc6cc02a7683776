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


class StepwiseDecoder:
    """Decoder that looks at each token before the next; see `Decoder`."""

    def __init__(self, weights: Weights, generator: torch.Generator) -> None:
        """Create a decoder whose draws come from one source of randomness."""
        self._weights, self._generator = weights, generator

    @torch.inference_mode()
    def decode(self, cache: Cache, rows_R: Tensor, hidden_RE: Tensor, sampling: Sampling) -> Continuations:
        """Sample continuations; see `Decoder.decode`."""
        cache = cache.rows(rows_R, sampling.max_new_tokens)
        found = Continuations(len(rows_R), sampling.end_ids)
        for num_sampled in range(sampling.max_new_tokens):
            ids_R, logprobs_R = draw(logits_of(self._weights, hidden_RE), sampling, self._generator)
            found.append(ids_R.tolist(), logprobs_R.tolist())
            if not found.num_open:
                break
            if found.open_share < _COMPACT_BELOW:
                kept = found.drop_ended()
                cache = cache.rows(torch.tensor(kept), sampling.max_new_tokens - num_sampled)
                ids_R = ids_R[kept]
            hidden_RE = advance(self._weights, cache, ids_R[:, None])[:, 0]
            cache.lengths_R += 1
        return found
