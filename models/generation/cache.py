"""Cache of keys and values, and the forward pass that reads and extends it.

Shapes: R rows, T new tokens, S cached tokens, K key-value heads, D head size, E hidden size.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from models.network.compiled import compiled_on_gpu
from models.network.transformer import (
    Layer,
    Weights,
    attend,
    bias_of,
    finish_block,
    finished_by_block,
    norm,
    project,
    rotations,
)

_ROUND_TO = 32
"""Multiple that lengths are rounded up to, because CPU kernels are compiled once per shape."""


class Cache:
    """Keys and values of every layer, [R, K, S, D] each, and the filled length of each row.

    On a CPU they are float32: one token attends to the cache two to five times faster than in bfloat16. Lengths stay on
    the CPU, so that shapes are decided without waiting for a GPU.
    """

    def __init__(self, keys: list[Tensor], values: list[Tensor], lengths_R: Tensor) -> None:
        self.keys, self.values, self.lengths_R = keys, values, lengths_R

    @staticmethod
    def empty(weights: Weights, num_rows: int, capacity: int) -> "Cache":
        """Return a cache without tokens, with room for this many in each row."""
        shape = (num_rows, weights.num_kv_heads, capacity, weights.head_size)
        dtype = torch.float32 if weights.device.type == "cpu" else weights.dtype
        keys, values = (
            [torch.zeros(shape, dtype=dtype, device=weights.device) for _ in weights.blocks] for _ in range(2)
        )
        return Cache(keys, values, torch.zeros(num_rows, dtype=torch.long))

    def rows(self, rows_R: Tensor, num_more: int) -> "Cache":
        """Return some rows, up to their filled length, with room for more tokens.

        They are a copy, unless they are all rows and there is room: what is then written lies behind the filled length,
        where the next tokens overwrite it.
        """
        lengths_R = self.lengths_R[rows_R]
        span = min(rounded(int(lengths_R.max())), self.keys[0].shape[2])
        is_whole = torch.equal(rows_R, torch.arange(len(self.lengths_R)))
        if is_whole and rounded(span + num_more) <= self.keys[0].shape[2]:
            return Cache(self.keys, self.values, lengths_R)
        room = (0, 0, 0, rounded(span + num_more) - span)
        keys, values = ([F.pad(t[rows_R, :, :span], room) for t in tensors] for tensors in (self.keys, self.values))
        return Cache(keys, values, lengths_R)

    def reserve(self, capacity: int) -> None:
        """Make room for this many tokens per row, rounded up."""
        missing = capacity - self.keys[0].shape[2]
        if missing > 0:
            extra = rounded(missing)
            self.keys = [F.pad(k, (0, 0, 0, extra)) for k in self.keys]
            self.values = [F.pad(v, (0, 0, 0, extra)) for v in self.values]


def rounded(length: int) -> int:
    """Round a length up to one of the few that occur."""
    return -(-length // _ROUND_TO) * _ROUND_TO


def advance(
    weights: Weights, cache: Cache, ids_RT: Tensor, rows_R: Tensor | None = None, counts_R: Tensor | None = None
) -> Tensor:
    """Feed new tokens to some rows (default: all); return the hidden state of each row's last one, [R, E].

    Rows with fewer than T new tokens (counts_R) are padded on the right. The next tokens overwrite the padding in the
    cache, because only the caller advances the lengths.
    """
    lengths_R = cache.lengths_R if rows_R is None else cache.lengths_R[rows_R]
    span = rounded(int(lengths_R.max()) + ids_RT.shape[1])
    cache.reserve(span)
    positions_RT = lengths_R[:, None] + torch.arange(ids_RT.shape[1])
    ids_RT, positions_RT = ids_RT.to(weights.device), positions_RT.to(weights.device)
    last_R = None if counts_R is None else (counts_R - 1).to(weights.device)
    return pass_through(weights, cache.keys, cache.values, ids_RT, positions_RT, span, rows_R, last_R)


def pass_through(
    weights: Weights,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    ids_RT: Tensor,
    positions_RT: Tensor,
    span: int,
    rows_R: Tensor | None = None,
    last_R: Tensor | None = None,
) -> Tensor:
    """Compute new tokens, store their keys and values in place, and return each row's last hidden state, [R, E].

    Args:
        weights: Weights of the network.
        keys: Stored keys of each layer, [rows, K, S, D].
        values: Stored values of each layer, likewise.
        ids_RT: New tokens.
        positions_RT: Positions of the new tokens in their rows.
        span: Number of positions that may be attended to.
        rows_R: Rows of the new tokens; None: all rows.
        last_R: Index of each row's last new token, beyond which there is padding; None: the last of all.
    """
    device, single = weights.device, ids_RT.shape[1] == 1
    looks_in = keys[0].dtype if single else weights.dtype
    visible = positions_RT[:, None, :, None] >= torch.arange(span, device=device)
    bias = bias_of(visible, torch.float32 if single else weights.dtype)
    cos, sin = rotations(weights, positions_RT)
    rows = torch.arange(len(keys[0]), device=device) if rows_R is None else rows_R.to(device)
    heads_RK = rows[:, None] * weights.num_kv_heads + torch.arange(weights.num_kv_heads, device=device)
    place = (heads_RK[:, :, None] * keys[0].shape[2] + positions_RT[:, None, :]).flatten()
    x = F.embedding(ids_RT, weights.embedding).float()

    before, after = (_project_token, _finish_token) if single else (project, finish_block)

    def compute(layer: Layer, x: Tensor, keys: Tensor, values: Tensor, only_R: Tensor | None) -> Tensor:
        query, key, value = before(weights, layer, x, cos, sin)
        keys.flatten(0, 2).index_copy_(0, place, key.flatten(0, 2).to(keys.dtype))
        values.flatten(0, 2).index_copy_(0, place, value.flatten(0, 2).to(values.dtype))
        seen_keys, seen_values = keys[:, :, :span], values[:, :, :span]
        if rows_R is not None:
            seen_keys, seen_values = seen_keys[rows_R], seen_values[rows_R]
        sees = bias
        if only_R is not None:
            x, query, sees = _at(x[:, None], only_R)[:, 0], _at(query, only_R), _at(bias, only_R)
        attended = attend(query.to(looks_in), seen_keys.to(looks_in), seen_values.to(looks_in), sees)
        return after(weights, layer, x, attended.to(weights.dtype))

    finished = finished_by_block(weights, last_R)
    for block, own_keys, own_values, only_R in zip(weights.blocks, keys, values, finished, strict=True):
        x = block(compute, x, own_keys, own_values, only_R)
    return norm(x[:, -1], weights.norm_E, weights.epsilon, weights.dtype)


def _at(x_RHTX: Tensor, places_R: Tensor) -> Tensor:
    """Return what belongs to one token of each row, [R, H, 1, X]."""
    return x_RHTX[torch.arange(len(x_RHTX), device=x_RHTX.device), :, places_R][:, :, None]


@compiled_on_gpu
def _project_token(
    weights: Weights, layer: Layer, x: Tensor, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return project(weights, layer, x, cos, sin)  # compiled apart from the same function in training, which has its own


@compiled_on_gpu
def _finish_token(weights: Weights, layer: Layer, x: Tensor, attended: Tensor) -> Tensor:
    return finish_block(weights, layer, x, attended)
