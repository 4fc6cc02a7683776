"""Requirements of a network that transformers computes; one that cannot be trained or sampled is refused with a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from models.network.foreign.weights import ForeignWeights, forward_groups
from models.network.lora import add_adapters, has_adapters
from schemas.errors import InputError
from schemas.recipes.networks import TrainingRecipe

_ROWS = [[1, 2, 3, 4, 5, 6, 7], [1, 2, 3], [4, 5, 6, 7]]
"""Rows of the trial; the second is the start of the first."""
_TOLERANCE = 1e-3
"""Allowed norm of a difference, relative to that of the logits."""


def require_shape(network: Any) -> None:
    """Refuse an architecture that is no text decoder with a head of its own.

    Raises:
        InputError: it is an encoder-decoder, or its head is not apart from its body.
    """
    config = network.config
    kind = repr(config.model_type)
    if config.is_encoder_decoder:
        raise InputError(f"{kind} is an encoder-decoder: choose a decoder, which writes a text on from its start")
    if network.get_output_embeddings() is None or network.base_model is network:
        raise InputError(f"{kind} has no head apart from its body, which log-probabilities of single tokens need")


def require_trainable(network: Any, training: TrainingRecipe, num_ranks: int) -> None:
    """Refuse settings of training that need our own forward pass; adapters are tried, and stay on the network.

    Raises:
        InputError: several ranks, activations that this architecture cannot recompute, or adapters that it does not take.
    """
    kind = repr(network.config.model_type)
    if num_ranks > 1:
        raise InputError(f"{kind} is computed by transformers, on a single rank: set DREAMGYM_NUM_RANKS=1")
    if training.gradient_checkpointing and not network.supports_gradient_checkpointing:
        raise InputError(f"{kind} cannot recompute activations: set training.gradient_checkpointing = false")
    if training.lora_rank and not has_adapters(network):
        add_adapters(network, training.lora_rank, training.lora_alpha, seed=0)


@torch.no_grad()
def require_faithful(weights: ForeignWeights) -> None:
    """Refuse a network that computes other logits for rows in a batch than for each alone, on a trial of a few tokens.

    Raises:
        InputError: it does, its tokens see later ones, or its forward pass fails.
    """
    kind = repr(weights.network.config.model_type)
    with _failures_explained(kind):
        alone = [_logits_alone(weights, row) for row in _ROWS]
        together = weights.logits(forward_groups(weights, _ROWS, []))
    if not is_close(alone[1], alone[0][: len(_ROWS[1])]):
        raise InputError(f"{kind}: tokens see later ones, so it is no causal language model")
    if not is_close(together, torch.cat(alone)):
        raise InputError(
            f"{kind}: rows of a batch do not have the logits that each has alone: it cannot be trained here"
        )


def _logits_alone(weights: ForeignWeights, row: list[int]) -> Tensor:
    return weights.network(input_ids=torch.tensor([row], device=weights.device), use_cache=False).logits[0].float()


def is_close(found: Tensor, expected: Tensor, tolerance: float = _TOLERANCE) -> bool:
    """Return whether logits are the same but for rounding."""
    return bool((found - expected).norm() <= tolerance * expected.norm())


@contextmanager
def _failures_explained(kind: str) -> Iterator[None]:
    try:
        yield
    except (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"{kind}: its forward pass in transformers fails on a few tokens: {error}") from error
