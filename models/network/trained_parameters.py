"""Selection of the weights of a network to train, and of gradient checkpointing."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from torch import Tensor

from models.network.lora import add_adapters, has_adapters, is_adapter
from schemas.recipes.networks import TrainingRecipe


def make_trainable(network: Any, recipe: TrainingRecipe, seed: int) -> None:
    """Make a network ready for training, in place.

    Args:
        network: Network; adapters that it has are trained on.
        recipe: Training settings: all weights or adapters, and gradient checkpointing.
        seed: Seed of new adapters.

    Raises:
        InputError: adapters are configured and peft is not installed.
    """
    if recipe.lora_rank and not has_adapters(network):
        add_adapters(network, recipe.lora_rank, recipe.lora_alpha, seed)
    for name, weight in network.named_parameters():
        weight.requires_grad_(recipe.lora_rank == 0 or is_adapter(name))
    if recipe.gradient_checkpointing and not network.is_gradient_checkpointing:
        network.gradient_checkpointing_enable()


def trainable_copy(network: Any, recipe: TrainingRecipe, seed: int) -> Any:
    """Return a trainable copy of a network in use; where adapters are trained, the copy shares the base weights.

    Trained weights are float32; a base that is shared keeps its dtype.
    """
    beneath = [weight for name, weight in network.named_parameters() if recipe.lora_rank and not is_adapter(name)]
    copied = copy_sharing(network, beneath)
    make_trainable(copied if recipe.lora_rank else copied.float(), recipe, seed)
    return copied


def copy_sharing(network: Any, shared: Iterable[Tensor]) -> Any:
    """Return a copy of a network that shares some of its weights."""
    return deepcopy(network, {id(weight): weight for weight in shared})
