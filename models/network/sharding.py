"""Ranks: processes that train one network together, each with a part of everything (FSDP2).

Weights, gradients and the optimiser's state are sharded over them; a block's weights are gathered only while it
computes. With a single rank, nothing here changes anything.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import torch
from torch import Tensor, distributed, nn

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

Part = TypeVar("Part")
_METHOD = "compute_gathered"


def num_ranks() -> int:
    """Return the number of ranks."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank() -> int:
    """Return the number of this rank, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def shard(network: Any) -> None:
    """Shard a network's weights over all ranks, in place.

    They are gathered as they are, so that sharded training computes the same as a single rank.
    """
    for module in (*network.model.layers, network):
        shard_module(module)


def shard_module(module: Any) -> None:
    """Shard a module's own weights over all ranks, in place, as one block."""
    if num_ranks() == 1:
        return
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method  # importing it takes a second

    setattr(module, _METHOD, MethodType(_compute, module))
    sharded = fully_shard(module)
    sharded.set_gradient_divide_factor(1.0)  # a loss is the sum of the ranks' shares
    sharded.set_force_sum_reduction_for_comms(True)
    register_fsdp_forward_method(module, _METHOD)


def _compute(_: nn.Module, function: Callable[..., Any], *inputs: Any) -> Any:
    return function(*inputs)


def with_full_parameters(module: nn.Module, function: Callable[..., Any], *inputs: Any) -> Any:
    """Return a function's result, computed while the module's own weights are gathered on this rank.

    Gradients flow only through tensors among inputs and results.
    """
    if not hasattr(module, _METHOD):
        return function(*inputs)
    return getattr(module, _METHOD)(function, *inputs)


def local_shards(parts: Sequence[Part]) -> Iterator[tuple[Part, float]]:
    """Yield this rank's parts of a whole, each with its factor: 1, or 0 for a repeated part.

    Ranks gather weights together, so all of them must compute equally often.
    """
    for start in range(0, len(parts), num_ranks()):
        place = start + rank()
        yield (parts[place], 1.0) if place < len(parts) else (parts[-1], 0.0)


def all_reduce_sum(values: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of each value over all ranks, which have the same names in the same order."""
    if num_ranks() == 1:
        return dict(values)
    totals = torch.tensor(list(values.values()), dtype=torch.float64)
    distributed.all_reduce(totals)
    return dict(zip(values, totals.tolist(), strict=True))


def names_on_all_ranks(names: Iterable[str]) -> list[str]:
    """Return the names that any rank has, in an order that is the same on all."""
    if num_ranks() == 1:
        return list(names)
    known: list[list[str]] = [[] for _ in range(num_ranks())]
    distributed.all_gather_object(known, list(names))
    return list(dict.fromkeys(name for of_rank in known for name in of_rank))


def full_tensor(tensor: Tensor) -> Tensor:
    """Return the whole of a tensor that may be sharded; every rank must call this."""
    return tensor.full_tensor() if _is_sharded(tensor) else tensor


def are_finite(tensors: Iterable[Tensor]) -> bool:
    """Return whether every value is a finite number, those on other ranks, too; every rank must call this."""
    parts = [one.to_local() if _is_sharded(one) else one for one in tensors]
    num_others = sum(not bool(one.isfinite().all()) for one in parts)
    return all_reduce_sum({"others": num_others})["others"] == 0


def distribute_like(tensor: Tensor, like: Tensor) -> Tensor:
    """Return this rank's part of a tensor that every rank has, sharded like another tensor."""
    if not _is_sharded(like):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)


def _is_sharded(tensor: Tensor) -> TypeGuard["DTensor"]:
    if num_ranks() == 1:
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)
