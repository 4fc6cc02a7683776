"""Attention over packed tokens on a GPU, which pads nothing and computes no half of a rectangle that is masked.

Shapes: N tokens of all rows, M keys of all rows, R rows, H heads, K key-value heads, D head size.
"""

import inspect
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, chain
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from models.network.transformer import Weights


@cache
def _kernel() -> Any:
    """Return the fused kernel, or None before torch 2.10; imported on a GPU only, as it takes half a second."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn


def can_attend(weights: Weights) -> bool:
    """Return whether the fused kernel takes tensors like these."""
    if weights.device.type != "cuda" or weights.head_size % 8 or weights.head_size > 256 or _kernel() is None:
        return False
    return weights.dtype == torch.bfloat16 and torch.cuda.get_device_capability(weights.device) >= (8, 0)


class VarlenGroups:
    """Positions of the tokens of groups, and attention among them: rows, and other rows that continue them."""

    def __init__(
        self, weights: Weights, first: list[Sequence[int]], then: list[Sequence[int]], owners: list[int]
    ) -> None:
        """Lay out rows `first`, and rows `then`, each of which continues the row that `owners` names."""
        device, starts = weights.device, [len(first[owner]) for owner in owners]
        lengths = [*map(len, first), *map(len, then)]
        begins = [0] * len(first) + starts
        positions = [torch.arange(start, start + length) for start, length in zip(begins, lengths, strict=True)]
        self.positions_1N = torch.cat(positions)[None].to(device)
        self.ids_N = torch.from_numpy(np.array([*chain(*first, *then)])).to(device)
        edges = [*accumulate(lengths, initial=0)]
        own = [torch.arange(edges[row], edges[row + 1]) for row in range(len(lengths))]
        seen = own[: len(first)] + [
            torch.cat([own[owner], own[len(first) + number]]) for number, owner in enumerate(owners)
        ]
        self._seen_M = torch.cat(seen).to(device) if then else None
        """Tokens that each row may look at, itself included; None if they are its own."""
        self._query_edges = torch.tensor(edges, dtype=torch.int32, device=device)
        self._key_edges = torch.tensor([*accumulate(map(len, seen), initial=0)], dtype=torch.int32, device=device)
        self._longest = max(lengths), max(map(len, seen))

    def attended(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend from queries [1, H, N, D] to keys and values, which may have fewer heads; return [N, H * D]."""
        queries, keys, values = (t[0].transpose(0, 1).contiguous() for t in (query, key, value))
        if self._seen_M is not None:
            keys, values = _Repeated.apply(keys, self._seen_M), _Repeated.apply(values, self._seen_M)
        edges = self._query_edges, self._key_edges
        return _kernel()(queries, keys, values, *edges, *self._longest, **_causal()).flatten(1)


@cache
def _causal() -> dict[str, Any]:
    """Return the arguments for causal attention of fewer key-value heads, whose names differ between versions of torch."""
    known = inspect.signature(_kernel()).parameters
    causal: dict[str, Any] = {"window_size": (-1, 0)} if "window_size" in known else {"is_causal": True}
    return causal | ({"enable_gqa": True} if "enable_gqa" in known else {})


class _Repeated(Function):
    """Rows of a tensor, some of them several times; gradients are added up in float32."""

    @staticmethod
    def forward(ctx: Any, x_N: Tensor, index_M: Tensor) -> Tensor:
        """Return the rows that the index names."""
        ctx.save_for_backward(index_M)
        ctx.shape = x_N.shape
        return x_N.index_select(0, index_M)

    @staticmethod
    def backward(ctx: Any, grad_M: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the sum of the gradients of each row."""
        (index_M,) = ctx.saved_tensors
        sums_N = torch.zeros(ctx.shape, dtype=torch.float32, device=grad_M.device)
        return sums_N.index_add_(0, index_M, grad_M.float()).to(grad_M.dtype), None
