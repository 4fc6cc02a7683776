"""The trainer's terms: each is divided by its own count, and a loss may own a network."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from models.methods.losses import Batch, Loss
from models.methods.method import NoOptions, built_in_names
from models.methods.streams import TrainingGroup, TrainingStream
from models.network.transformer import weights_of
from models.training.checkpoints import load_optimizer, optimizer_state
from models.training.policy_trainer import PolicyTrainer
from models.training.trained_logprobs import trained_logprobs
from schemas.records import Tokens
from tests.training import group_of, rl, trainer_of
from tests.unit.tiny import tiny_network

STREAM = Tokens([1, 2, 10, 3, 4, 11], [False, False, True, False, False, True], [0.0] * 6)
GROUP = group_of([STREAM, Tokens([1, 2, 20], [False, False, True], [0.0] * 3)], [1.0, -1.0])


class Marked(Loss[NoOptions]):
    """Policy gradient, with weights on tokens that nobody sampled."""

    ce: tuple[float, ...] = ()
    ref_kl: tuple[float, ...] = ()
    gain = 1.0

    @property
    def needs_reference(self) -> bool:
        return bool(self.ref_kl)

    def marked(self, group: TrainingGroup) -> TrainingGroup:
        first, *others = group.streams
        return replace(group, streams=[replace(first, ce_weights=[*self.ce], ref_kl_weights=[*self.ref_kl]), *others])

    def rl(self, batch: Batch):
        return -(self.gain * batch.advantages_N * batch.logprobs_N).sum(), {}


def gradient(loss: Loss) -> torch.Tensor:
    """Return how far one step of SGD moves the weights."""
    network = tiny_network(seed=1)
    before = torch.cat([weight.detach().flatten().clone() for weight in network.parameters()])
    options = rl(updates_per_round=1, learning_rate=1.0, max_grad_norm=1e9)
    trainer = PolicyTrainer(network, tiny_network(seed=2), loss, options, 1000, torch.float32)
    trainer.optimizer = torch.optim.SGD(network.parameters())
    trainer.train([GROUP])
    return before - torch.cat([weight.detach().flatten() for weight in network.parameters()])


def loss_with(**marks) -> Marked:
    loss = Marked(NoOptions())
    for name, value in marks.items():
        setattr(loss, name, value)
    return loss


def test_observed_tokens_leave_the_gradient_of_sampled_ones_as_it_is():
    alone, both = gradient(loss_with()), gradient(loss_with(ce=(0, 0, 0, 1, 1, 0)))
    observed = gradient(loss_with(ce=(0, 0, 0, 1, 1, 0), gain=0.0))
    torch.testing.assert_close(both, alone + observed, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("with_rl", [True, False])
def test_an_update_of_observed_tokens_alone_has_no_metrics_of_sampled_ones(with_rl):
    watched = TrainingStream(Tokens([1, 2, 3], [False] * 3, [0.0] * 3), [], ce_weights=[0.0, 1.0, 1.0])
    observed = [TrainingGroup([watched]), TrainingGroup([watched])]
    network = tiny_network(seed=1)
    trainer = PolicyTrainer(network, None, loss_with(), rl(updates_per_round=2), 1000, torch.float32)
    metrics = trainer.train([*([GROUP, GROUP] if with_rl else []), *observed])
    alone = PolicyTrainer(tiny_network(seed=1), None, loss_with(), rl(updates_per_round=1), 1000, torch.float32)
    expected = alone.train([GROUP, GROUP]) if with_rl else {}
    assert metrics.get("kl") == expected.get("kl")
    assert metrics.get("entropy") == (pytest.approx(expected["entropy"]) if with_rl else None)
    assert metrics["ce"] > 0
    assert metrics["nonfinite_updates"] == 0


def test_cross_entropy_is_a_mean_over_its_own_tokens():
    network = tiny_network(seed=1)
    marked = replace(GROUP, streams=[replace(GROUP.streams[0], ce_weights=[0, 0, 0, 1, 1, 0])])
    logprobs = trained_logprobs(weights_of(network, torch.float32), [marked], 1.0)
    (-logprobs[1:3].mean()).backward()  # of the four trained tokens, the middle two were observed
    expected = torch.cat([weight.grad.flatten() for weight in network.parameters()])
    found = gradient(loss_with(ce=(0, 0, 0, 1, 1, 0), gain=0.0))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_the_kl_to_the_reference_vanishes_where_policy_and_reference_are_equal_and_weighs_tokens():
    once, twice = (gradient(loss_with(ref_kl=(0, 0, weight, 0, 0, 0), gain=0.0)) for weight in (1.0, 2.0))
    assert once.norm() > 0
    torch.testing.assert_close(twice, 2 * once, atol=1e-5, rtol=1e-4)


def test_an_update_that_is_not_finite_changes_no_weight_and_is_counted():
    network = tiny_network(seed=1)
    before = [weight.detach().clone() for weight in network.parameters()]
    trainer = PolicyTrainer(network, None, loss_with(gain=float("nan")), rl(), 1000, torch.float32)
    metrics = trainer.train([GROUP])
    assert metrics["nonfinite_updates"] == 1
    assert [math.isnan(metrics[name]) for name in ("loss", "grad_norm")] == [True, True]
    assert all(torch.equal(one, other) for one, other in zip(before, network.parameters(), strict=True))


class WithBaseline(Loss[NoOptions]):
    """Policy gradient over a learnt baseline."""

    def network(self, hidden_size: int) -> nn.Module:
        return nn.Linear(hidden_size, 1)

    def rl(self, batch: Batch):
        values_N = batch.network(batch.hidden_NH.detach())[:, 0]
        gains_N = batch.advantages_N - values_N.detach()
        return (-gains_N * batch.logprobs_N + (values_N - batch.advantages_N) ** 2).sum(), {}


def test_a_network_of_the_loss_is_trained_along_and_goes_on_from_its_checkpoint():
    def trainer() -> PolicyTrainer:
        options = rl(learning_rate=1e-2, updates_per_round=1)
        return PolicyTrainer(tiny_network(seed=1), None, WithBaseline(NoOptions()), options, 1000, torch.float32)

    whole, cut_off = trainer(), trainer()
    first = [weight.detach().clone() for weight in whole.own_network.parameters()]
    for _ in range(2):
        whole.train([GROUP])
    assert not any(torch.equal(one, other) for one, other in zip(first, whole.own_network.parameters(), strict=True))
    cut_off.train([GROUP])
    resumed = trainer()
    resumed.network.load_state_dict(cut_off.network.state_dict())
    load_optimizer(resumed.optimizer, optimizer_state(cut_off.optimizer, cut_off.own_network), resumed.own_network)
    resumed.train([GROUP])
    for ours, theirs in zip(resumed._parameters(), whole._parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("loss", built_in_names("loss"))
def test_every_loss_makes_the_better_action_likelier(loss):
    network = tiny_network(seed=1)
    trainer = trainer_of(
        network, tiny_network(seed=1), rl(loss={"name": loss}, learning_rate=1e-2, updates_per_round=1)
    )
    group = group_of([Tokens([1, 2, token], [False, False, True], [0.0] * 3) for token in (10, 20)], [1.0, -1.0])

    def logprobs() -> torch.Tensor:
        return trained_logprobs(weights_of(network, torch.float32), [group], 1.0).detach()

    before = logprobs()
    for _ in range(3):
        trainer.train([group])
    better, worse = logprobs() - before
    assert better > worse
