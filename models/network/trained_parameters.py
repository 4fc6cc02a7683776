"""What of a network is trained, and how its activations are kept."""

from copy import deepcopy
from typing import Any

from models.network.lora import add_adapters, has_adapters, is_adapter
from schemas.recipes.recipe import TrainingRecipe


def make_trainable(network: Any, recipe: TrainingRecipe, seed: int) -> None:
    """Make a network ready for training, in place.

    Args:
        network: Adapters that it has are trained on.
        recipe: Whether all weights are trained, or adapters.
        seed: Of new adapters.

    Raises:
        InputError: adapters are wanted and peft is not installed.
    """
    if recipe.lora_rank and not has_adapters(network):
        add_adapters(network, recipe.lora_rank, recipe.lora_alpha, seed)
    for name, weight in network.named_parameters():
        weight.requires_grad_(recipe.lora_rank == 0 or is_adapter(name))
    if recipe.gradient_checkpointing and not network.is_gradient_checkpointing:
        network.gradient_checkpointing_enable()


def trainable_copy(network: Any, recipe: TrainingRecipe, seed: int) -> Any:
    """A copy of a network that others use meanwhile; where adapters are trained, it shares the weights beneath."""
    beneath = [weight for name, weight in network.named_parameters() if recipe.lora_rank and not is_adapter(name)]
    copied = deepcopy(network, {id(weight): weight for weight in beneath})
    make_trainable(copied, recipe, seed)
    return copied
