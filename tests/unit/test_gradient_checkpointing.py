"""Activations that are recomputed: the same gradients, and less memory for the backward pass."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from models.network.trained_parameters import trainable_copy
from models.network.transformer import weights_of
from models.training.sft import Example, sft_loss
from models.training.trained_logprobs import trained_logprobs
from schemas.recipes.networks import TrainingRecipe
from schemas.records import Tokens
from tests.training import group_of
from tests.unit.tiny import tiny_network

EXAMPLES = [Example.of((list(range(1, 30)), False), (list(range(30, 60)), True))] * 4


def fine_tuning(network):
    return sft_loss(network, EXAMPLES, torch.float32)


def update(network):
    streams = [Tokens([1, 2, token, 3] * 8, [False, False, True, False] * 8, [0.0] * 32) for token in (10, 20)]
    return trained_logprobs(weights_of(network, torch.float32), [group_of(streams, [1.0, -1.0])], 0.8).sum()


def bytes_kept(loss, network) -> int:
    """Return the bytes saved for the backward pass, which is run."""
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        loss(network).backward()
    return sum(kept.values())


@pytest.mark.parametrize("loss", [fine_tuning, update])
@pytest.mark.parametrize("rank", [0, 4])
def test_gradients_are_the_same_and_less_is_kept(loss, rank):
    plain, lean = (
        trainable_copy(tiny_network(num_hidden_layers=8), TrainingRecipe(lora_rank=rank, lora_alpha=8), seed=0)
        for _ in range(2)
    )
    lean.gradient_checkpointing_enable()
    assert bytes_kept(loss, lean) < 0.5 * bytes_kept(loss, plain)
    for expected, weight in zip(plain.parameters(), lean.parameters(), strict=True):
        assert (expected.grad is None) == (weight.grad is None)
        if expected.grad is not None:
            torch.testing.assert_close(weight.grad, expected.grad, atol=1e-6, rtol=1e-5)
