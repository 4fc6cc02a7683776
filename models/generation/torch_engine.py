"""The torch engine: batched sampling with a key-value cache that lasts for a whole episode.

    sessions.extend   adds tokens from outside (task, state) to the cache, ragged; equal starts are computed once
    sessions.generate samples tokens; finished rows leave the batch, so that no row waits for the longest

Sampled tokens enter the cache with the next extend, in one pass together with the next state.

Shapes: R rows, T new tokens, S cached tokens, K key-value heads, D head size, E hidden size, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from models.network.precision import matmul_dtype
from models.network.transformer import (
    Layer,
    Weights,
    attend,
    bias_of,
    finish_block,
    logits_of,
    norm,
    project,
    rotations,
    weights_of,
)
from schemas.sampling import Sampled, Sampling

_COMPACT_BELOW = 0.7
"""Share of rows still sampling below which the batch is compacted."""
_ROUND_TO = 32
"""Multiple that lengths are rounded up to, because CPU kernels are compiled once per shape."""
_TOKENS_AT_ONCE = 2_048
"""Maximum number of tokens per prefill pass on a CPU; larger passes overflow its caches and take twice as long."""


def engine_weights(network: Any) -> Weights:
    """Return a network's weights for generation, in the precision that is fastest on its device for 32 rows or more."""
    return weights_of(network, matmul_dtype(network.device), for_sampling=True)


class TorchEngine:
    """Engine in this process; see `schemas.ports.Engine`."""

    def __init__(self, weights: Weights, seed: int, version: str = "") -> None:
        """Create an engine that samples the same tokens for the same seed and the same sequence of requests.

        Args:
            weights: Weights to sample from.
            seed: Seed of the sampling.
            version: Version of the weights, stamped on everything that is sampled.
        """
        self._weights, self._generator = weights, torch.Generator(weights.device).manual_seed(seed)
        self._version = version

    def open(self, num_rows: int, capacity: int = 256) -> "Sessions":
        """Open empty streams; all streams of the engine draw from one source of randomness."""
        return Sessions(self._weights, num_rows, self._generator, capacity, self._version)


class _Cache:
    """Keys and values of every layer, [R, K, S, D] each, and the filled length of each row.

    On a CPU they are float32: one token attends to the cache two to five times faster than in bfloat16. Lengths stay on
    the CPU, so that shapes are decided without waiting for a GPU.
    """

    def __init__(self, keys: list[Tensor], values: list[Tensor], lengths_R: Tensor) -> None:
        self.keys, self.values, self.lengths_R = keys, values, lengths_R

    @staticmethod
    def empty(weights: Weights, num_rows: int, capacity: int) -> "_Cache":
        shape = (num_rows, weights.num_kv_heads, capacity, weights.head_size)
        dtype = torch.float32 if weights.device.type == "cpu" else weights.dtype
        keys, values = (
            [torch.zeros(shape, dtype=dtype, device=weights.device) for _ in weights.blocks] for _ in range(2)
        )
        return _Cache(keys, values, torch.zeros(num_rows, dtype=torch.long))

    def rows(self, rows_R: Tensor, num_more: int) -> "_Cache":
        """Return a copy of some rows, up to their filled length, with room for more tokens."""
        lengths_R = self.lengths_R[rows_R]
        span = min(_rounded(int(lengths_R.max())), self.keys[0].shape[2])
        room = (0, 0, 0, _rounded(span + num_more) - span)
        keys, values = ([F.pad(t[rows_R, :, :span], room) for t in tensors] for tensors in (self.keys, self.values))
        return _Cache(keys, values, lengths_R)

    def reserve(self, capacity: int) -> None:
        """Make room for this many tokens per row, rounded up."""
        missing = capacity - self.keys[0].shape[2]
        if missing > 0:
            extra = _rounded(missing)
            self.keys = [F.pad(k, (0, 0, 0, extra)) for k in self.keys]
            self.values = [F.pad(v, (0, 0, 0, extra)) for v in self.values]


def _rounded(length: int) -> int:
    return -(-length // _ROUND_TO) * _ROUND_TO


def _advance(weights: Weights, cache: _Cache, ids_RT: Tensor, rows_R: Tensor | None = None) -> Tensor:
    """Feed new tokens to some rows (default: all); return the last hidden states [R, T, E].

    Rows shorter than T are padded on the right. The next tokens overwrite the padding in the cache, because
    only the caller advances the lengths.
    """
    lengths_R = cache.lengths_R if rows_R is None else cache.lengths_R[rows_R]
    span = _rounded(int(lengths_R.max()) + ids_RT.shape[1])
    cache.reserve(span)
    device = weights.device
    positions_RT = (lengths_R[:, None] + torch.arange(ids_RT.shape[1])).to(device)
    looks_in = cache.keys[0].dtype if ids_RT.shape[1] == 1 else weights.dtype
    bias = bias_of(positions_RT[:, None, :, None] >= torch.arange(span, device=device), looks_in)
    cos, sin = rotations(weights, positions_RT)
    rows = torch.arange(len(lengths_R)) if rows_R is None else rows_R
    heads_RK = (rows[:, None] * weights.num_kv_heads + torch.arange(weights.num_kv_heads)).to(device)
    place = (heads_RK[:, :, None] * cache.keys[0].shape[2] + positions_RT[:, None, :]).flatten()
    x = F.embedding(ids_RT.to(device), weights.embedding)

    def compute(layer: Layer, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        query, key, value = project(weights, layer, x, cos, sin)
        keys.flatten(0, 2).index_copy_(0, place, key.flatten(0, 2).to(keys.dtype))
        values.flatten(0, 2).index_copy_(0, place, value.flatten(0, 2).to(values.dtype))
        seen_keys, seen_values = keys[:, :, :span], values[:, :, :span]
        if rows_R is not None:
            seen_keys, seen_values = seen_keys[rows_R], seen_values[rows_R]
        attended = attend(query.to(looks_in), seen_keys.to(looks_in), seen_values.to(looks_in), bias)
        return finish_block(weights, layer, x, attended.to(weights.dtype))

    for block, keys, values in zip(weights.blocks, cache.keys, cache.values, strict=True):
        x = block(compute, x, keys, values)
    return norm(x, weights.norm_E, weights.epsilon, weights.dtype)


class Sessions:
    """Token streams, one per row, each with its own length."""

    def __init__(
        self, weights: Weights, num_rows: int, generator: torch.Generator, capacity: int = 256, version: str = ""
    ) -> None:
        """Create empty streams.

        Args:
            weights: Weights of the network that continues the streams.
            num_rows: Number of streams.
            generator: Source of randomness for sampling.
            capacity: Initial room per row in tokens; it grows as needed.
            version: Version of the weights.
        """
        self._weights, self._version = weights, version
        self._generator = generator
        self._cache = _Cache.empty(weights, num_rows, capacity)
        self._next_hidden = torch.zeros(num_rows, weights.embedding.shape[1], device=weights.device)
        self._pending: list[list[int]] = [[] for _ in range(num_rows)]
        self.num_prefilled = 0
        self.num_sampled = 0

    def restart(self, row: int) -> None:
        """Clear a row's stream, so that the row can be reused."""
        self._cache.lengths_R[row] = 0
        self._pending[row] = []

    def length(self, row: int) -> int:
        """Return the number of tokens in a row's stream."""
        return int(self._cache.lengths_R[row]) + len(self._pending[row])

    @torch.inference_mode()
    def extend(self, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
        """Append tokens to rows; empty rows that get the same tokens are computed once and copied."""
        streams = {row: [*self._pending[row], *new] for row, new in zip(rows, ids, strict=True)}
        first_with: dict[tuple[int, ...], int] = {}
        copies: dict[int, int] = {}
        for row, stream in streams.items():
            twin = first_with.setdefault(tuple(stream), row) if self._cache.lengths_R[row] == 0 else row
            if twin != row:
                copies[row] = twin
        for portion in self._portions({row: stream for row, stream in streams.items() if row not in copies}):
            self._prefill(portion)
        self._copy_rows(copies)
        for row in rows:
            self._pending[row] = []

    def _portions(self, streams: dict[int, list[int]]) -> Iterator[dict[int, list[int]]]:
        """Split streams into prefill passes: on a CPU a few rows of similar length, elsewhere all at once."""
        if self._weights.device.type != "cpu":
            yield streams
            return
        portion: dict[int, list[int]] = {}
        for row in sorted(streams, key=lambda row: len(streams[row])):
            if portion and _rounded(len(streams[row])) * (len(portion) + 1) > _TOKENS_AT_ONCE:
                yield portion
                portion = {}
            portion[row] = streams[row]
        yield portion

    def _prefill(self, streams: dict[int, list[int]]) -> None:
        rows_R = torch.tensor(list(streams))
        counts_R = torch.tensor([len(stream) for stream in streams.values()])
        length = _rounded(int(counts_R.max()))
        ids_RT = torch.tensor([stream + [0] * (length - len(stream)) for stream in streams.values()])
        hidden = _advance(self._weights, self._cache, ids_RT, rows_R)
        self._next_hidden[rows_R] = hidden[torch.arange(len(streams)), counts_R - 1].float()
        self._cache.lengths_R[rows_R] += counts_R
        self.num_prefilled += int(counts_R.sum())

    def _copy_rows(self, copies: dict[int, int]) -> None:
        if not copies:
            return
        to, source = torch.tensor(list(copies)), torch.tensor(list(copies.values()))
        span = int(self._cache.lengths_R[source].max())
        for tensor in (*self._cache.keys, *self._cache.values):
            tensor[to, :, :span] = tensor[source, :, :span]
        self._next_hidden[to] = self._next_hidden[source]
        self._cache.lengths_R[to] = self._cache.lengths_R[source]

    @torch.inference_mode()
    def generate(self, rows: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each row, up to the end token or the token limit."""
        rows_R = torch.tensor(list(rows))
        cache = self._cache.rows(rows_R, sampling.max_new_tokens)
        hidden = self._next_hidden[rows_R]
        owners = list(range(len(rows)))
        out: list[tuple[list[int], list[float]]] = [([], []) for _ in rows]
        open_rows = set(owners)
        for num_sampled in range(sampling.max_new_tokens):
            ids_R, logprobs_R = self._sample(hidden, sampling)
            for owner, token, logprob in zip(owners, ids_R.tolist(), logprobs_R.tolist(), strict=True):
                if owner in open_rows:
                    out[owner][0].append(token)
                    out[owner][1].append(logprob)
                    if token == sampling.end_id:
                        open_rows.discard(owner)
            if not open_rows:
                break
            if len(open_rows) < _COMPACT_BELOW * len(owners):
                kept = [i for i, owner in enumerate(owners) if owner in open_rows]
                owners = [owners[i] for i in kept]
                cache = cache.rows(torch.tensor(kept), sampling.max_new_tokens - num_sampled)
                ids_R = ids_R[kept]
            hidden = _advance(self._weights, cache, ids_R[:, None])[:, 0]
            cache.lengths_R += 1
        for row, (ids, _) in zip(rows, out, strict=True):
            self._pending[row] = ids
            self.num_sampled += len(ids)
        return [Sampled(ids, logprobs, ids[-1] == sampling.end_id, self._version) for ids, logprobs in out]

    def _sample(self, hidden: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
        logits = logits_of(self._weights, hidden)
        if sampling.temperature == 0:
            return logits.argmax(-1), torch.zeros(len(logits), device=logits.device)
        probabilities = (logits / sampling.temperature).softmax(-1)
        if sampling.top_p < 1:
            probabilities = _nucleus(probabilities, sampling.top_p)
        ids_R = _draw(probabilities, self._generator)
        return ids_R, probabilities.gather(1, ids_R[:, None])[:, 0].log()


def _nucleus(probabilities_RV: Tensor, top_p: float) -> Tensor:
    """Return probabilities among the fewest tokens that together have top_p of them; 0 for all others."""
    sorted_RV, order_RV = probabilities_RV.sort(dim=-1, descending=True)
    before_RV = sorted_RV.cumsum(-1) - sorted_RV
    kept_RV = torch.zeros_like(sorted_RV).scatter(1, order_RV, sorted_RV.masked_fill(before_RV >= top_p, 0))
    return kept_RV / kept_RV.sum(-1, keepdim=True)


def _draw(probabilities_RV: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one index per row by looking up a uniform number in the running sum; multinomial draws V numbers per row."""
    sums_RV = probabilities_RV.cumsum(-1, dtype=torch.float64)
    uniform_R1 = torch.rand(len(sums_RV), 1, generator=generator, dtype=torch.float64, device=sums_RV.device)
    return torch.searchsorted(sums_RV, uniform_R1 * sums_RV[:, -1:], right=True)[:, 0]
