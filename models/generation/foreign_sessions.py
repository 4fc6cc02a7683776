"""Token streams of a network that transformers computes: each turn begins with all tokens of its streams anew.

Rows are padded on the left, with a mask and with positions that do not count the padding, and continued with transformers'
own cache. Where a trial shows that an architecture's cache changes its logits, every token is computed from all before it.

Shapes: R rows, T new tokens, S tokens in the cache, E hidden size, V vocabulary.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from models.generation.decoding import Rows, continued
from models.network.foreign.requirements import is_close
from models.network.foreign.weights import ForeignWeights, hidden_of_rows
from schemas.sampling import HeldStreams, Sampled, Sampling

_TOKENS_AT_ONCE = 32_768
"""Maximum number of tokens of rows that are continued together, at their longest."""
_TRIAL = [[1, 2, 3, 4, 5], [6, 7], [1, 2, 3, 4, 5]]
_TOLERANCES = {torch.float32: 1e-3, torch.bfloat16: 5e-2}
"""Allowed norm of a difference of logits in the trial, relative to theirs."""

Begin = Callable[[Sequence[Sequence[int]]], Rows]
"""Function that computes streams from their start and returns them as rows to continue."""


class ForeignSessions(HeldStreams):
    """Token streams, one per row."""

    def __init__(
        self,
        begin: Begin,
        num_rows: int,
        generator: torch.Generator,
        version: str,
        max_tokens: int | None = None,
    ) -> None:
        """Create empty streams.

        Args:
            begin: Function that computes streams; see `rows_of`.
            num_rows: Number of streams.
            generator: Source of randomness.
            version: Version of the weights.
            max_tokens: Tokens of a stream; None: no limit.
        """
        super().__init__(num_rows)
        self._begin, self._generator, self._version, self._max_tokens = begin, generator, version, max_tokens

    @torch.inference_mode()
    def generate(self, rows: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each row, up to the end token, the token limit, or the end of its stream."""
        sampled: dict[int, Sampled] = {}
        rooms = {row: sampling.room(self.length(row), self._max_tokens) for row in rows}
        for batch in self._batches([row for row in rows if rooms[row] > 0], sampling.max_new_tokens):
            streams = [self.ids[row] for row in batch]
            found = continued(self._begin(streams), len(batch), sampling, self._generator)
            for row, ids, logprobs in zip(batch, found.ids, found.logprobs, strict=True):
                whole = Sampled(ids, logprobs, ids[-1] in sampling.end_ids, self._version)
                sampled[row] = whole.within(rooms[row])
        answers = [sampled.get(row) or Sampled([], [], False, self._version, out_of_room=True) for row in rows]
        self.append(dict(zip(rows, answers, strict=True)))
        return answers

    def _batches(self, rows: Sequence[int], num_more: int) -> Iterator[list[int]]:
        """Split rows into batches of similar length that fit into memory."""
        batch: list[int] = []
        for row in sorted(rows, key=self.length):
            if batch and (self.length(row) + num_more) * (len(batch) + 1) > _TOKENS_AT_ONCE:
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch


def rows_of(weights: ForeignWeights) -> Begin:
    """Return how streams are computed: with a cache, if a trial of a few tokens shows that it changes nothing."""
    if weights.has_cache and _cache_is_exact(weights):
        return lambda streams: _CachedRows(weights, streams)
    warnings.warn(
        f"{weights.network.config.model_type!r} is sampled without a cache, since its cache does not take padded rows: each "
        "token is computed from all before it, which is slow. engine.name = 'vllm' may be faster",
        stacklevel=2,
    )
    return lambda streams: _AnewRows(weights, streams)


@torch.inference_mode()
def _cache_is_exact(weights: ForeignWeights) -> bool:
    """Return whether the cache gives the logits of a computation from the start, with padding, and for chosen rows."""
    try:
        kinds: list[Rows] = [kind(weights, _TRIAL) for kind in (_CachedRows, _AnewRows)]
        for rows in kinds:
            rows.append(torch.tensor([8, 9, 3], device=weights.device))
            rows.keep([2, 1])
            rows.append(torch.tensor([2, 1], device=weights.device))
        found, expected = (rows.logits() for rows in kinds)
    except (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return False
    return is_close(found, expected, _TOLERANCES[weights.dtype])


class _CachedRows:
    """Rows with a cache, padded on the left; see `Rows`. Equal streams are computed once."""

    def __init__(self, weights: ForeignWeights, streams: Sequence[Sequence[int]]) -> None:
        self._weights = weights
        self._cache: Any = None
        distinct = {tuple(stream): number for number, stream in enumerate(dict.fromkeys(map(tuple, streams)))}
        longest = max(map(len, distinct))
        self._mask_RS = torch.tensor(
            [[0] * (longest - len(one)) + [1] * len(one) for one in distinct], device=weights.device
        )
        ids_RT = torch.tensor([[*[0] * (longest - len(one)), *one] for one in distinct], device=weights.device)
        self._compute(ids_RT, (self._mask_RS.cumsum(1) - 1).clamp(min=0))
        if len(distinct) < len(streams):
            self.keep([distinct[tuple(stream)] for stream in streams])

    def _compute(self, ids_RT: Tensor, positions_RT: Tensor) -> None:
        options = {"attention_mask": self._mask_RS, "past_key_values": self._cache, "use_cache": True}
        done = self._weights.body(ids_RT, positions_RT, **options)
        self._cache, self._hidden_RE = done.past_key_values, done.last_hidden_state[:, -1]

    def logits(self) -> Tensor:
        return self._weights.logits(self._hidden_RE)

    def append(self, ids_R: Tensor) -> None:
        self._mask_RS = torch.cat([self._mask_RS, torch.ones_like(self._mask_RS[:, :1])], dim=1)
        self._compute(ids_R[:, None], self._mask_RS.sum(1, keepdim=True) - 1)

    def keep(self, places: Sequence[int]) -> None:
        chosen = torch.tensor(places, device=self._weights.device)
        self._cache.reorder_cache(chosen)
        self._mask_RS, self._hidden_RE = self._mask_RS[chosen], self._hidden_RE[chosen]


class _AnewRows:
    """Rows that are computed from their start for every token, as in training; see `Rows`."""

    def __init__(self, weights: ForeignWeights, streams: Sequence[Sequence[int]]) -> None:
        self._weights, self._streams = weights, [list(stream) for stream in streams]

    def logits(self) -> Tensor:
        return self._weights.logits(torch.stack([one[-1] for one in hidden_of_rows(self._weights, self._streams)]))

    def append(self, ids_R: Tensor) -> None:
        for stream, token in zip(self._streams, ids_R.tolist(), strict=True):
            stream.append(token)

    def keep(self, places: Sequence[int]) -> None:
        self._streams = [list(self._streams[place]) for place in places]
