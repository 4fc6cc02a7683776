"""Ranks: processes that train one network together, each of which has a part of everything (FSDP2).

Weights, gradients and the optimiser's state are spread over them; a block's weights are together only while it computes.
Without other ranks, everything here leaves everything as it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MethodType
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

Part = TypeVar("Part")
_METHOD = "compute_gathered"


def num_ranks() -> int:
    """How many there are."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank() -> int:
    """Which one this is, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def shard(network: Any) -> None:
    """Spread a network's weights over all ranks, in place.

    They are gathered in float32, as they are: so sharded training computes what one rank alone would.
    """
    if num_ranks() == 1:
        return
    for module in (*network.model.layers, network):
        setattr(module, _METHOD, MethodType(_compute, module))
        sharded = fully_shard(module)
        sharded.set_gradient_divide_factor(1.0)  # a loss is a sum over ranks, of which each has its share
        sharded.set_force_sum_reduction_for_comms(True)
        register_fsdp_forward_method(module, _METHOD)


def _compute(_: nn.Module, function: Callable[..., Any], *inputs: Any) -> Any:
    return function(*inputs)


def with_full_parameters(module: nn.Module, function: Callable[..., Any], *inputs: Any) -> Any:
    """What a function makes of its inputs, while the weights that lie in a module itself are together on this rank.

    Gradients flow through tensors among inputs and results only.
    """
    if not hasattr(module, _METHOD):
        return function(*inputs)
    return getattr(module, _METHOD)(function, *inputs)


def local_shards(parts: Sequence[Part]) -> Iterator[tuple[Part, float]]:
    """This rank's parts of a whole, and what each counts: 1, or 0 where one is repeated.

    Ranks gather weights together, so that all of them must compute equally often.
    """
    for start in range(0, len(parts), num_ranks()):
        place = start + rank()
        yield (parts[place], 1.0) if place < len(parts) else (parts[-1], 0.0)


def all_reduce_sum(values: Mapping[str, float]) -> dict[str, float]:
    """Over all ranks."""
    if num_ranks() == 1:
        return dict(values)
    totals = torch.tensor(list(values.values()), dtype=torch.float64)
    distributed.all_reduce(totals)
    return dict(zip(values, totals.tolist(), strict=True))


def full_tensor(tensor: Tensor) -> Tensor:
    """A tensor of which this rank may have a part only. All ranks have to ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def distribute_like(tensor: Tensor, like: Tensor) -> Tensor:
    """Of a tensor that every rank has, what lies on this rank, as another is spread."""
    if not isinstance(like, DTensor):
        return tensor
    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)
