"""Low-rank adapters (LoRA, arXiv 2106.09685): what a network learns lies beside its weights, which stay as they were.

peft makes, stores and loads them, in its own format; models/network/transformer.py computes with them.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from schemas.errors import InputError

_PROJECTIONS = r".*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"
"""One pattern: of several names peft writes the order anew in every process, and the file's digest would change."""
_NAME = "default"
"""That peft gives adapters."""
_NOTES = ("_hf_peft_config_loaded", "peft_config", "_weight_conversions")
"""What a network of transformers knows of its adapters, and saves its weights by."""


def has_adapters(network: Any) -> bool:
    """Whether adapters lie beside a network's weights."""
    return getattr(network, "_hf_peft_config_loaded", False)


def is_adapter(name: str) -> bool:
    """Whether a weight of this name is an adapter's."""
    return ".lora_" in name


def add_adapters(network: Any, rank: int, alpha: int, seed: int) -> None:
    """Lay new adapters, which change nothing before they are trained, beside a network's weights.

    Args:
        network: Changed in place.
        rank: Of the adapters.
        alpha: They count alpha / rank.
        seed: Of their first weights.

    Raises:
        InputError: peft is not installed.
    """
    try:
        from peft import LoraConfig
    except ImportError as error:
        raise InputError("training.lora_rank needs peft: pip install 'dreamgym[lora]'") from error
    torch.manual_seed(seed)
    network.add_adapter(LoraConfig(r=rank, lora_alpha=alpha, target_modules=_PROJECTIONS), _NAME)


def adapter_of(linears: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Adapters of linear maps of one input as one: the way down [A, in] and the scaled way up [out, A], A ranks in all."""
    down = torch.cat([one.lora_A[_NAME].weight for one in linears])
    up = torch.block_diag(*[one.lora_B[_NAME].weight * one.scaling[_NAME] for one in linears])
    return down, up


def merged(network: Any) -> Any:
    """A copy of a network with its adapters added to its weights, for engines that know no adapters."""
    plain = deepcopy(network)
    for name, layer in list(plain.named_modules()):
        if hasattr(layer, "lora_A"):
            layer.merge()
            plain.set_submodule(name, layer.get_base_layer())
    for note in _NOTES:
        vars(plain).pop(note, None)
    return plain
