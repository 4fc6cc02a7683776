"""Everything is computed where the weights are. The meta device stands in for a GPU: it refuses the CPU's tensors.

Where there is a GPU, what it computes is compared with what a CPU does.
"""

from copy import deepcopy
from typing import Any

import pytest
import torch

from models.generation.torch_engine import TorchEngine
from models.network.packed import forward
from models.network.trained_parameters import make_trainable
from models.network.transformer import weights_of
from models.training.sft import Example, sft_loss
from models.training.trained_logprobs import trained_logprobs
from schemas.recipes.networks import TrainingRecipe
from schemas.records import Tokens
from schemas.sampling import Sampling
from tests.training import group_of
from tests.unit.tiny import tiny_network, true_logprobs

needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no GPU: run `python -m pytest tests/unit/test_devices.py` where there is one"
)
MASK, ZEROS = [False, False, True, True], [0.0] * 4
GROUP = group_of([Tokens([1, 2, 10, 11], MASK, ZEROS), Tokens([1, 2, 20, 9], MASK, ZEROS)], [1.0, -1.0])


@pytest.fixture
def network():
    return tiny_network().to("meta")


def test_a_forward_pass_goes_to_the_weights(network):
    assert forward(weights_of(network, torch.float32), [[1, 2, 3]]).device.type == "meta"


def test_fine_tuning_goes_to_the_weights(network):
    sft_loss(network, [Example.of(([1, 2], False), ([3, 4], True))], torch.float32).backward()
    assert all(weight.grad.device.type == "meta" for weight in network.parameters())


def test_an_update_of_the_policy_goes_to_the_weights(network):
    surrogate(network).backward()
    assert all(weight.grad.device.type == "meta" for weight in network.parameters())


def surrogate(network: Any) -> torch.Tensor:
    """Return the surrogate objective of GROUP, as in a first update."""
    logprobs = trained_logprobs(weights_of(network, torch.float32), [GROUP], temperature=0.8)
    advantages = torch.tensor([1.0, 1.0, -1.0, -1.0]).to(logprobs.device)
    return ((logprobs - logprobs.detach()).exp() * advantages).sum()


def gradients_of(network: Any) -> list[torch.Tensor]:
    """Return the gradients of all trained weights, of an update of the policy and of fine-tuning."""
    surrogate(network).backward()
    sft_loss(network, [Example.of(([1, 2], False), ([3, 4], True))], torch.float32).backward()
    return [weight.grad.cpu() for weight in network.parameters() if weight.requires_grad]


@needs_gpu
@pytest.mark.parametrize("lora_rank", [0, 4])
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_gradients_are_those_of_a_cpu(kind, checkpointing, lora_rank):
    network = tiny_network(kind=kind)
    make_trainable(network, TrainingRecipe(lora_rank=lora_rank, gradient_checkpointing=checkpointing), seed=0)
    on_gpu = deepcopy(network).to("cuda")
    torch.testing.assert_close(gradients_of(on_gpu), gradients_of(network), rtol=1e-3, atol=1e-5)


@needs_gpu
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_what_is_sampled_over_several_turns_is_as_likely_as_on_a_cpu(kind):
    network = tiny_network(kind=kind)
    weights = weights_of(deepcopy(network).to("cuda"), torch.float32, for_sampling=True)
    sessions = TorchEngine(weights, 0).open(3)
    streams: list[list[int]] = [[], [], []]
    for news in ([[5, 6, 7], [5, 6, 7], [9]], [[11, 12], [13], [14, 15, 16]]):
        sessions.extend(range(3), news)
        sampled = sessions.generate(range(3), Sampling(max_new_tokens=6, end_ids=(0,)))
        for row, one in enumerate(sampled):
            before = [*streams[row], *news[row]]
            streams[row] = [*before, *one.ids]
            table = true_logprobs(network, streams[row])[len(before) - 1 : -1]
            expected = table.gather(1, torch.tensor(one.ids)[:, None])[:, 0]
            torch.testing.assert_close(torch.tensor(one.logprobs), expected, rtol=0, atol=1e-4)


@needs_gpu
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_an_update_in_bfloat16_is_about_that_of_a_cpu(kind):
    network = tiny_network(kind=kind, vocab_size=512)
    streams = [
        Tokens([1, 2, *range(length, 2 * length)], [False] * 9 + [True] * (length - 7), [0.0] * (length + 2))
        for length in (40, 25, 60)
    ]
    group, found = group_of(streams, [1.0, -1.0, 0.5]), []
    for device, dtype in (("cpu", torch.float32), ("cuda", torch.bfloat16)):
        there = deepcopy(network).to(device)
        logprobs = trained_logprobs(weights_of(there, dtype), [group], temperature=0.8)
        (logprobs * torch.linspace(-1, 1, len(logprobs), device=device)).sum().backward()
        found.append((logprobs.detach().cpu(), torch.cat([one.grad.flatten().cpu() for one in there.parameters()])))
    for ours, theirs in zip(*found, strict=True):
        assert (ours - theirs).norm() < 0.05 * theirs.norm()


@needs_gpu
def test_captured_steps_sample_as_likely_as_the_network_says_and_anew_each_time():
    network, count = tiny_network(vocab_size=16), 4_096
    likely = true_logprobs(network, [3, 1, 4])[-1].softmax(-1)
    engine = TorchEngine(weights_of(deepcopy(network).to("cuda"), torch.float32, for_sampling=True), 0)
    drawn = []
    for _ in range(2):
        sessions = engine.open(count)
        sessions.extend(range(count), [[3, 1]] * count)
        drawn.append([one.ids for one in sessions.generate(range(count), Sampling(6, ()))])
    assert drawn[0] != drawn[1]
    followed = [ids[1] for run in drawn for ids in run if ids[0] == 4]
    shares = torch.bincount(torch.tensor(followed), minlength=16) / len(followed)
    assert torch.allclose(shares, likely, atol=5 * (0.25 / len(followed)) ** 0.5)
