"""Low-rank adapters: computed as peft computes them, trained alone, and merged without a difference."""

import pytest
import torch

from models.network.lora import has_adapters, merged
from models.network.packed import forward
from models.network.trained_parameters import trainable_copy
from models.network.transformer import logits_of, weights_of
from models.training.sft import Example, fit, repeated, sft_loss
from schemas.recipes.networks import TrainingRecipe
from tests.unit.tiny import tiny_network

IDS = torch.randint(0, 64, (3, 17), generator=torch.Generator().manual_seed(1))
EXAMPLES = [Example.of(([5, 6, 7], False), ([8, 9, number], True)) for number in range(10, 18)]


def adapted(kind="qwen3"):
    """Return a network with adapters as training leaves them: the B matrices are no longer zero."""
    network = trainable_copy(tiny_network(kind=kind), TrainingRecipe(lora_rank=4, lora_alpha=8), seed=0)
    for name, weight in network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return network


def logits(network, *, for_sampling=False):
    weights = weights_of(network, torch.float32, for_sampling=for_sampling)
    return logits_of(weights, forward(weights, IDS.tolist())[: IDS.numel()]).unflatten(0, IDS.shape)


def gradients(network):
    return {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_logits_and_gradients_are_those_of_peft(kind):
    ours, theirs = adapted(kind), adapted(kind)
    theirs.load_state_dict(ours.state_dict())
    logits(ours).square().mean().backward()
    theirs(IDS).logits.square().mean().backward()
    torch.testing.assert_close(logits(ours), theirs(IDS).logits, atol=1e-5, rtol=1e-5)
    assert gradients(ours).keys() == gradients(theirs).keys()
    for name, gradient in gradients(theirs).items():
        torch.testing.assert_close(gradients(ours)[name], gradient, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_merging_changes_nothing(kind):
    network = adapted(kind)
    expected = logits(network)
    torch.testing.assert_close(logits(network, for_sampling=True), expected, atol=1e-5, rtol=1e-5)
    plain = merged(network)
    assert not any("lora" in name for name in plain.state_dict())
    torch.testing.assert_close(plain(IDS).logits, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(logits(network), expected)


def test_new_adapters_change_nothing_and_are_the_same_for_a_seed():
    network = tiny_network()
    first, again, other = (
        trainable_copy(network, TrainingRecipe(lora_rank=4, lora_alpha=8), seed=seed) for seed in (1, 1, 2)
    )
    torch.testing.assert_close(logits(first), logits(network))
    down = "model.layers.0.mlp.down_proj.lora_A.default.weight"
    assert torch.equal(first.state_dict()[down], again.state_dict()[down])
    assert not torch.equal(first.state_dict()[down], other.state_dict()[down])
    assert not has_adapters(network)


def test_only_adapters_learn_and_the_weights_beneath_are_shared():
    network = tiny_network()
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    copied = trainable_copy(network, TrainingRecipe(lora_rank=4, lora_alpha=8), seed=0)
    assert copied.model.embed_tokens.weight is network.model.embed_tokens.weight
    loss = sft_loss(copied, EXAMPLES, torch.float32).item()
    fit(copied, repeated(EXAMPLES, 256, seed=0), 30, 1e-2)
    assert sft_loss(copied, EXAMPLES, torch.float32).item() < 0.8 * loss
    for name, weight in network.state_dict().items():
        assert torch.equal(weight, before[name]), name


def test_a_further_copy_goes_on_with_the_adapters_it_finds():
    network = adapted()
    copied = trainable_copy(network, TrainingRecipe(lora_rank=4, lora_alpha=8), seed=9)
    torch.testing.assert_close(logits(copied), logits(network))
    fit(copied, repeated(EXAMPLES, 256, seed=0), 1, 1e-2)
    assert not torch.allclose(logits(copied), logits(network))


def test_without_a_rank_all_weights_are_copied_and_learn():
    network = tiny_network()
    before = logits(network)
    copied = trainable_copy(network, TrainingRecipe(lora_rank=0, lora_alpha=8), seed=0)
    fit(copied, repeated(EXAMPLES, 256, seed=0), 1, 1e-2)
    assert all(weight.requires_grad for weight in copied.parameters())
    torch.testing.assert_close(logits(network), before)
    assert not torch.allclose(logits(copied), before)
