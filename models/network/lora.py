"""Low-rank adapters (LoRA, arXiv 2106.09685): training changes added matrices, and the network's own weights stay.

peft creates, stores and loads them, in its own format; models/network/transformer.py computes with them.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from schemas.errors import InputError

_PROJECTIONS = r".*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"
"""Pattern of the adapted projections. It is a single one, because peft writes several names in a new order in every
process, which would change the file's digest."""
_NAME = "default"
"""Name that peft gives adapters."""
_NOTES = ("_hf_peft_config_loaded", "peft_config", "_weight_conversions")
"""Attributes in which a transformers network records its adapters, and by which it saves its weights."""


def has_adapters(network: Any) -> bool:
    """Return whether a network has adapters."""
    return getattr(network, "_hf_peft_config_loaded", False)


def is_adapter(name: str) -> bool:
    """Return whether the weight of this name belongs to an adapter."""
    return ".lora_" in name


def add_adapters(network: Any, rank: int, alpha: int, seed: int) -> None:
    """Add new adapters to a network; they change nothing before they are trained.

    Args:
        network: Network, changed in place.
        rank: Rank of the adapters.
        alpha: Scale of the adapters, which count alpha / rank.
        seed: Seed of their initial weights.

    Raises:
        InputError: peft is not installed.
    """
    require_peft()
    from peft import LoraConfig

    torch.manual_seed(seed)
    network.add_adapter(LoraConfig(r=rank, lora_alpha=alpha, target_modules=_PROJECTIONS), _NAME)


def require_peft() -> None:
    """Refuse adapters where their package is missing.

    Raises:
        InputError: peft is not installed.
    """
    try:
        import peft  # noqa: F401
    except ImportError as error:
        raise InputError("training.lora_rank needs peft: pip install 'dreamgym[lora]'") from error


def adapter_of(linears: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Fuse the adapters of linear maps with one input: down [A, in] and scaled up [out, A], for A ranks in all."""
    down = torch.cat([one.lora_A[_NAME].weight for one in linears])
    up = torch.block_diag(*[one.lora_B[_NAME].weight * one.scaling[_NAME] for one in linears])
    return down, up


def merged(network: Any) -> Any:
    """Return a copy of a network with its adapters merged into its weights, for engines without adapter support."""
    plain = deepcopy(network)
    for name, layer in list(plain.named_modules()):
        if hasattr(layer, "lora_A"):
            layer.merge()
            plain.set_submodule(name, layer.get_base_layer())
    for note in _NOTES:
        vars(plain).pop(note, None)
    return plain
