"""Log-probabilities of targets, computed a few at a time."""

import pytest
import torch
from torch.testing import assert_close

from models.network import head
from models.network.transformer import weights_of
from tests.unit.tiny import tiny_network


@pytest.mark.parametrize("logits_at_a_time", [1, 3 * 64, 10**9])
def test_they_and_their_gradients_are_those_of_all_logits_at_once(monkeypatch, logits_at_a_time):
    monkeypatch.setattr(head, "_LOGITS_AT_A_TIME", logits_at_a_time)
    network = tiny_network(vocab_size=64)
    hidden = torch.randn(7, 32, generator=torch.Generator().manual_seed(0), requires_grad=True)
    targets = torch.arange(7) * 9
    found = head.target_logprobs(weights_of(network, torch.float32), hidden, targets, temperature=0.7)
    expected = (network.lm_head(hidden) / 0.7).log_softmax(-1)[torch.arange(7), targets]
    assert_close(found, expected)
    inputs = (hidden, network.lm_head.weight)
    assert_close(torch.autograd.grad(found.sum(), inputs), torch.autograd.grad(expected.sum(), inputs))


@pytest.mark.parametrize("rows_at_a_time", [1, 3, 10**6])
@pytest.mark.parametrize("head_is_trained", [True, False])
def test_products_of_a_narrow_dtype_give_the_same_where_nothing_is_rounded(
    monkeypatch, rows_at_a_time, head_is_trained
):
    monkeypatch.setattr(head, "_ROWS_AT_A_TIME", rows_at_a_time)
    weight = tiny_network(vocab_size=64).lm_head.weight.requires_grad_(head_is_trained)
    hidden = torch.randn(7, 32, generator=torch.Generator().manual_seed(0), requires_grad=True)
    targets, slopes = torch.arange(7) * 9, torch.linspace(-1, 2, 7)
    found = head.NarrowLogprobs.apply(hidden, weight, targets, 0.7)
    expected = (hidden @ weight.t() / 0.7).log_softmax(-1)[torch.arange(7), targets]
    assert_close(found, expected)
    inputs = (hidden, weight) if head_is_trained else (hidden,)
    assert_close(torch.autograd.grad(found, inputs, slopes), torch.autograd.grad(expected, inputs, slopes))
