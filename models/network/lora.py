"""Low-rank adapters (LoRA, arXiv 2106.09685): training changes added matrices, and the network's own weights stay.

peft creates, stores and loads them, in its own format; models/network/transformer.py computes with them.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from schemas.errors import InputError

_PROJECTIONS = r".*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"
"""Pattern of the adapted projections. It is a single one, because peft writes several names in a new order in every
process, which would change the file's digest."""
_LLAMA_PROJECTIONS = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
_ROUTERS = {"gate", "router"}
"""Linear maps that choose experts, which adapters leave alone."""
_EXPERTS = {"gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"}
"""Linear maps of MLPs, whose names peft takes for those of experts where a layer's experts are one tensor."""
_NAME = "default"
"""Name that peft gives adapters."""
ADAPTERS, _PREFIX = "adapter_model.safetensors", "base_model.model."
"""Name of peft's file, and what it puts before the names of weights."""
_NOTES = ("_hf_peft_config_loaded", "peft_config", "_weight_conversions")
"""Attributes in which a transformers network records its adapters, and by which it saves its weights."""


def has_adapters(network: Any) -> bool:
    """Return whether a network has adapters."""
    return getattr(network, "_hf_peft_config_loaded", False)


def adapter_rank(network: Any) -> int:
    """Return the rank of a network's adapters; 0 if it has none."""
    return network.peft_config[_NAME].r if has_adapters(network) else 0


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
        InputError: peft is not installed, or cannot adapt this architecture.
    """
    require_peft()
    from peft import LoraConfig

    torch.manual_seed(seed)
    names = _adapted(network)
    try:
        network.add_adapter(LoraConfig(r=rank, lora_alpha=alpha, target_modules=names), _NAME)
        network.peft_config[_NAME].target_modules = names  # for mixtures of experts, peft writes it out in any order
    except ValueError as error:
        reason = str(error).splitlines()[0]
        kind = repr(network.config.model_type)
        raise InputError(
            f"{kind} takes no adapters: set training.lora_rank = 0, which trains all weights ({reason})"
        ) from error
    forget_origin(network)
    for name, weight in network.named_parameters():
        if is_adapter(name):
            weight.data = weight.data.float()


def forget_origin(network: Any) -> None:
    """Remove from the configuration of a network's adapters in which folder its weights were, and whether they were loaded.

    The files of equal adapters are then equal, wherever and however they were made.
    """
    configuration = network.peft_config[_NAME]
    configuration.base_model_name_or_path, configuration.inference_mode = None, True


def restore_adapters(network: Any, folder: Path) -> None:
    """Give the adapters of a loaded network the weights of their file: a loader casts them to the network's dtype."""
    stored = adapters_in(folder, network)
    for name, weight in network.named_parameters():
        if is_adapter(name):
            weight.data = stored[name].to(weight.device)


def adapters_in(folder: Path, network: Any) -> dict[str, Tensor]:
    """Return the weights of the adapters in a folder by their names in a network.

    Where the folder holds none they are zero, which changes nothing.
    """
    adapters = {name: weight for name, weight in network.named_parameters() if is_adapter(name)}
    if not (folder / ADAPTERS).exists():
        return {name: torch.zeros(weight.shape) for name, weight in adapters.items()}
    stored = load_file(folder / ADAPTERS)
    return {name: stored[_PREFIX + name.replace(f".{_NAME}.", ".")] for name in adapters}


def _adapted(network: Any) -> str:
    """Return a pattern of the names of the linear maps that get adapters.

    They are all but the head, routers, maps whose weights are read without calling them, and the MLPs of mixtures whose
    experts are one tensor.

    Raises:
        InputError: there are none.
    """
    head = network.get_output_embeddings()
    linears = {
        name: module
        for name, module in network.named_modules()
        if (isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D") and module is not head
    }
    names = {name.rpartition(".")[2] for name in linears} - _ROUTERS
    if names == _LLAMA_PROJECTIONS:
        return _PROJECTIONS
    if network.device.type != "meta":
        names &= {name.rpartition(".")[2] for name in _called(network, linears)}
    if any(name.endswith("_proj") for name, _ in network.named_parameters()):
        names -= _EXPERTS
    if not names:
        raise InputError(f"{network.config.model_type!r} has no linear maps to adapt: set training.lora_rank = 0")
    return rf".*\.({'|'.join(sorted(names))})"


@torch.no_grad()
def _called(network: Any, linears: Mapping[str, nn.Module]) -> set[str]:
    """Return the names of the linear maps that the forward pass calls on a few tokens."""
    called: set[str] = set()
    hooks = [module.register_forward_hook(lambda *_, name=name: called.add(name)) for name, module in linears.items()]
    network.base_model(input_ids=torch.tensor([[1, 2, 3]], device=network.device), use_cache=False)
    for hook in hooks:
        hook.remove()
    return called


def require_peft() -> None:
    """Refuse adapters where their package is missing.

    Raises:
        InputError: peft is not installed.
    """
    try:
        import peft  # noqa: F401
    except ImportError as error:
        raise InputError("training.lora_rank needs peft: pip install 'dreamgym[lora]'") from error


def share_base(network: Any, other: Any) -> bool:
    """Let a loaded network share its own weights with another network, if these are equal; return whether they are."""
    there = {_plain_name(name): weight for name, weight in other.named_parameters() if not is_adapter(name)}
    here = {_plain_name(name): weight for name, weight in network.named_parameters() if not is_adapter(name)}
    if here.keys() != there.keys() or not all(_are_equal(weight, there[name]) for name, weight in here.items()):
        return False
    for name, weight in here.items():
        weight.data = there[name].data
    return True


def _plain_name(name: str) -> str:
    return name.replace(".base_layer.", ".")


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other.to(one.device))


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
            dtype = layer.get_base_layer().weight.dtype
            layer.float().merge()
            plain.set_submodule(name, layer.get_base_layer().to(dtype))
    for note in _NOTES:
        vars(plain).pop(note, None)
    return plain
