"""Supervised fine-tuning: a batch's loss and gradients, however it is cut."""

import pytest
import torch
from torch.testing import assert_close

from models.network.transformer import activation
from models.training.checkpoints import Checkpoints
from models.training.jobs import SftJob
from models.training.sft import Example, SftProgress, backward, fit, repeated
from schemas.errors import TrainingError
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


def test_stochastic_activations_by_hand():
    gate = torch.tensor([-2.0, -1.0, 0.5, 3.0])
    silu = gate * torch.sigmoid(gate)
    assert torch.equal(activation(gate, 0.0), torch.nn.functional.silu(gate))
    assert_close(activation(gate, 1.0), torch.tensor([0.0, 0.0, silu[2], silu[3]]))
    torch.manual_seed(0)
    many = activation(torch.full((10_000,), -1.0), 0.3)
    assert_close(many.unique(), torch.tensor([silu[1], 0.0]))
    assert (many == 0).float().mean().item() == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("relu_share", [0.0, 0.5])
def test_an_interrupted_training_with_stochastic_activations_ends_as_one_that_was_not(tmp_path, relu_share):
    def trained(num_updates: int, checkpoints: Checkpoints | None = None):
        network = tiny_network(seed=1)
        stream = repeated(BATCH, 64, seed=0)
        fit(network, stream, num_updates, 1e-2, checkpoints=checkpoints, relu_share=relu_share)
        return network

    class Cut(Exception):
        pass

    def cut(progress):
        if progress.update == 3:
            raise Cut

    whole = trained(6)
    with pytest.raises(Cut), Checkpoints(tmp_path, every_s=0.0) as kept:
        fit(tiny_network(seed=1), repeated(BATCH, 64, seed=0), 6, 1e-2, cut, kept, relu_share=relu_share)
    torch.rand(7)
    with Checkpoints(tmp_path, every_s=0.0) as kept:
        resumed = trained(6, kept)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


def test_weights_that_the_last_update_spoilt_are_not_kept(tmp_path):
    network = tiny_network(seed=1)

    def spoil(progress: SftProgress) -> None:
        if progress.update == progress.num_updates:
            next(iter(network.parameters())).data[0] = torch.nan

    with pytest.raises(TrainingError, match="weights that are no finite numbers"):
        SftJob(BATCH, 64, 1000, 2, 1e-3).run(network, 0, spoil, Checkpoints(tmp_path, every_s=600))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_training_that_diverges_stops_before_it_spoils_the_weights(value):
    network = tiny_network(seed=1)
    stream = repeated(BATCH, 64, seed=0)

    def spoil(progress: SftProgress) -> None:
        if progress.update == 2:
            next(iter(network.parameters())).data[0] = value

    with pytest.raises(TrainingError, match=r"update 3 of 5 .* lower sft\.learning_rate"):
        fit(network, stream, 5, 1e-3, spoil)
    assert all(torch.isfinite(one).all() for one in list(network.parameters())[1:])
