"""Supervised fine-tuning: a batch's loss and gradients, however it is cut."""

import pytest
import torch
from torch.testing import assert_close

from models.training.sft import Example, backward
from tests.unit.tiny import tiny_network

BATCH = [Example.of((list(range(1, 20 + n)), False), (list(range(20, 24 + 5 * n)), True)) for n in range(5)]


@pytest.mark.parametrize("max_tokens", [1, 64, 128])
def test_gradients_do_not_depend_on_how_a_batch_is_cut(max_tokens):
    whole, cut = tiny_network(), tiny_network()
    losses = [backward(whole, BATCH, torch.float32, 10_000), backward(cut, BATCH, torch.float32, max_tokens)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    for one, other in zip(whole.parameters(), cut.parameters(), strict=True):
        assert_close(one.grad, other.grad, atol=1e-6, rtol=1e-5)


def test_the_loss_is_the_mean_over_all_targets():
    network = tiny_network()
    logprobs = [
        network(torch.tensor([one.ids])).logits[0, place - 1].log_softmax(-1)[one.ids[place]].item()
        for one in BATCH
        for place in range(1, len(one.ids))
        if one.is_target[place]
    ]
    assert backward(network, BATCH, torch.float32, 64) == pytest.approx(-sum(logprobs) / len(logprobs), rel=1e-5)
