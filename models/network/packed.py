"""Forward passes for training: tokens of all rows are packed without padding, and padded at most to attend.

Shapes: N tokens of all rows, M wanted tokens, R rows side by side, T tokens of the longest, H heads, D head size, E hidden
size.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from models.network.compiled import compiled_on_gpu
from models.network.foreign import weights as foreign
from models.network.foreign.weights import ForeignWeights
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
from models.network.varlen import VarlenGroups, can_attend

Row = Sequence[int]

_ROUND_TO = 16
_SHAPES_PER_OCTAVE = 32
"""Number of token counts per doubling; others are rounded up, because CPU kernels are compiled once per shape."""

_project, _finish_block = compiled_on_gpu(project), compiled_on_gpu(finish_block)


def forward(weights: Weights | ForeignWeights, rows: Sequence[Row], wanted_M: Tensor | None = None) -> Tensor:
    """Return hidden states after the last norm, without a cache.

    Args:
        weights: Weights from weights_of.
        rows: Token ids.
        wanted_M: Indices of the wanted tokens; see forward_groups.

    Returns:
        Hidden states [M, E] in the dtype of the weights; [N, E], row after row, followed by filler, if all are wanted.
    """
    return forward_groups(weights, rows, [], wanted_M)


def forward_groups(
    weights: Weights | ForeignWeights,
    prefixes: Sequence[Row],
    suffixes: Sequence[Sequence[Row]],
    wanted_M: Tensor | None = None,
) -> Tensor:
    """Return hidden states of groups of rows with a common prefix, which is computed once per group.

    Args:
        weights: Weights from weights_of.
        prefixes: Common prefix of each group.
        suffixes: Continuations of each prefix; empty if no prefix has any.
        wanted_M: Indices of the wanted tokens among all: all prefixes one after the other, then all suffixes. The last
            block is finished for no others. None: all are wanted.

    Returns:
        Hidden states [M, E]; [N, E], followed by filler, if all are wanted.
    """
    if isinstance(weights, ForeignWeights):
        hidden = foreign.forward_groups(weights, prefixes, suffixes)
        return hidden if wanted_M is None else hidden[wanted_M]
    first, then = list(prefixes), list(chain(*suffixes))
    owners = [owner for owner, group in enumerate(suffixes) for _ in group]
    filler = _filler([*first, *then])
    if then:
        then, owners = then + filler, owners + [0] * len(filler)
    else:
        first += filler
    groups = (VarlenGroups if can_attend(weights) else _PaddedGroups)(weights, first, then, owners)
    spin = rotations(weights, groups.positions_1N)
    x_NE = F.embedding(groups.ids_N, weights.embedding).float()

    def compute(layer: Layer, x_NE: Tensor, only: Tensor | None) -> Tensor:
        attended = groups.attended(*_project(weights, layer, x_NE[None], *spin))
        if only is not None:
            x_NE, attended = x_NE.index_select(0, only), attended.index_select(0, only)
        return _finish_block(weights, layer, x_NE, attended)

    last = None if wanted_M is None else F.pad(wanted_M, (0, _num_missing(len(wanted_M))))
    for block, only in zip(weights.blocks, finished_by_block(weights, last), strict=True):
        x_NE = block(compute, x_NE, only)
    hidden = norm(x_NE, weights.norm_E, weights.epsilon, weights.dtype)
    return hidden if wanted_M is None else hidden[: len(wanted_M)]


def _filler(rows: Sequence[Row]) -> list[Row]:
    """Return rows that no other row attends to, none longer than the longest."""
    count, longest = sum(map(len, rows)), max(map(len, rows))
    return [[0] * min(longest, missing) for missing in range(_num_missing(count), 0, -longest)]


def _num_missing(count: int) -> int:
    """Return how many tokens a count lacks to be one of the few that occur."""
    step = max(_ROUND_TO, 1 << max(0, count.bit_length() - _SHAPES_PER_OCTAVE.bit_length()))
    return -count % step


class _PaddedGroups:
    """Positions and attention masks of the tokens of groups: rows, and other rows that continue them."""

    def __init__(self, weights: Weights, first: list[Row], then: list[Row], owners: list[int]) -> None:
        device, dtype = weights.device, weights.dtype
        starts = [len(first[owner]) for owner in owners]
        positions = chain(*map(_positions, first, [0] * len(first)), *map(_positions, then, starts))
        self.positions_1N = torch.tensor([[*positions]], device=device)
        self.ids_N = torch.tensor([*chain(*first, *then)], device=device)
        self._first = _Rows(first, device)
        self._first_bias = bias_of(self._first.causal_TT, dtype)
        self._then = _Rows(then, device) if then else None
        if self._then:
            self._owners_R = torch.tensor(owners, device=device)
            seen = self._first.inside_RT[self._owners_R][:, None].expand(-1, self._then.longest, -1)
            own = self._then.causal_TT.expand(len(then), -1, -1)
            self._then_bias = bias_of(torch.cat([seen, own], dim=2), dtype)[:, None]

    def attended(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend from queries [1, H, N, D] to keys and values, which may have fewer heads; return [N, H * D]."""
        cut = self._first.num_tokens
        queries, keys, values = (self._first.pad(t[0, :, :cut]) for t in (query, key, value))
        attended = self._first.unpad(attend(queries, keys, values, self._first_bias))
        if self._then is None:
            return attended
        queries, own_keys, own_values = (self._then.pad(t[0, :, cut:]) for t in (query, key, value))
        keys = torch.cat([keys[self._owners_R], own_keys], dim=2)
        values = torch.cat([values[self._owners_R], own_values], dim=2)
        return torch.cat([attended, self._then.unpad(attend(queries, keys, values, self._then_bias))])


def _positions(row: Row, start: int) -> range:
    return range(start, start + len(row))


class _Rows:
    """Tokens of rows, both packed one after the other and padded side by side."""

    def __init__(self, rows: list[Row], device: torch.device) -> None:
        lengths_R1 = torch.tensor([len(row) for row in rows])[:, None]
        self.num_tokens = int(lengths_R1.sum())
        self.longest = -(-int(lengths_R1.max()) // _ROUND_TO) * _ROUND_TO
        inside_RT = torch.arange(self.longest) < lengths_R1
        self._place_of_token = inside_RT.flatten().nonzero()[:, 0].to(device)
        self._token_of_place = (inside_RT.flatten().cumsum(0) - 1).clamp(min=0).to(device)  # padding: the last token
        self.inside_RT = inside_RT.to(device)
        self.causal_TT = torch.ones(self.longest, self.longest, dtype=torch.bool, device=device).tril()

    def pad(self, x_HND: Tensor) -> Tensor:
        """Return rows padded to the longest, [R, H, T, D]; the content of the padding does not matter."""
        num_heads, num_tokens, head_size = x_HND.shape
        x_NX = x_HND.transpose(0, 1).flatten(1)
        if num_tokens:
            x_NX = _Moved.apply(x_NX, self._token_of_place, self._place_of_token, None)
        else:
            x_NX = x_NX.new_zeros(self.inside_RT.numel(), x_NX.shape[1])
        return x_NX.view(*self.inside_RT.shape, num_heads, head_size).transpose(1, 2)

    def unpad(self, x_RTX: Tensor) -> Tensor:
        """Return the tokens of the rows without the padding, [N, X]."""
        return _Moved.apply(x_RTX.flatten(0, 1), self._place_of_token, self._token_of_place, self.inside_RT)


class _Moved(Function):
    """Moved rows of a matrix; each counts at most once, so that gradients are moved back instead of added up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Tensor, back: Tensor, counts: Tensor | None) -> Tensor:
        """Move rows of x [A, X]: there [B] is the source of each new row, back [A] the inverse, counts [A] a mask."""
        ctx.save_for_backward(back, counts)
        return x.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        back, counts = ctx.saved_tensors
        moved = grad.index_select(0, back)
        return (moved if counts is None else moved * counts.view(-1, 1)), None, None, None
