"""Everything is computed where the weights are. The meta device stands in for a GPU: it refuses to meet the CPU's tensors."""

import pytest
import torch

from models.groups import ScoredGroup, token_advantages
from models.grpo import action_logprobs
from models.packed import forward
from models.sft import Example, sft_loss
from models.transformer import weights_of
from schemas.records import Tokens
from tests.unit.tiny import tiny_network


@pytest.fixture
def network():
    return tiny_network().to("meta")


def test_a_forward_pass_goes_to_the_weights(network):
    assert forward(weights_of(network, torch.float32), [[1, 2, 3]]).device.type == "meta"


def test_fine_tuning_goes_to_the_weights(network):
    sft_loss(network, [Example.of(([1, 2], False), ([3, 4], True))], torch.float32).backward()
    assert all(weight.grad.device.type == "meta" for weight in network.parameters())


def test_an_update_of_the_policy_goes_to_the_weights(network):
    mask, zeros = [False, False, True], [0.0] * 3
    group = ScoredGroup([Tokens([1, 2, 10], mask, zeros), Tokens([1, 2, 20], mask, zeros)], [1.0, -1.0])
    logprobs = action_logprobs(weights_of(network, torch.float32), [group], temperature=0.8)
    advantages = token_advantages([group]).to(logprobs.device)
    ratio = (logprobs - logprobs.detach()).exp()
    (ratio * advantages).sum().backward()
    assert all(weight.grad.device.type == "meta" for weight in network.parameters())
