"""Preferences between two episodes of a group, by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.methods.losses import open_loss
from models.methods.streams import num_units, pairs
from schemas.recipes.methods import LossRecipe
from tests.training import batch_of, group_of, rl, trainer_of
from tests.unit.methods.streams import tokens
from tests.unit.tiny import tiny_network


def test_the_loss_by_hand():
    # log-ratios 0.5 and -0.2: -log sigmoid(0.1 * 0.7) = 0.6588; the second pair is the first the other way round
    logprobs = torch.tensor([-1.0, -2.0, -4.0, -4.0, -3.0])
    reference = torch.tensor([-1.5, -2.0, -3.8, -3.8, -3.5])
    batch = batch_of(logprobs, logprobs, torch.zeros(5), reference, lengths=[1, 1, 1, 1, 1], episodes=[0, 0, 1, 2, 3])
    loss, sums = open_loss(LossRecipe(name="dpo")).rl(batch)
    assert loss.item() == pytest.approx(0.6588 + 0.7288, abs=2e-4)
    assert sums == {"preferred": 1.0, "margin": pytest.approx(0.0, abs=1e-6)}


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=8), st.integers(0, 5))
def test_a_pair_is_better_first_and_a_group_without_one_is_left_out(returns, draw):
    group = group_of([tokens(2) for _ in returns], returns)
    found = pairs([group], draw)
    assert len(found) == (len(set(returns)) > 1)
    assert found == pairs([group], draw)
    for pair in found:
        assert pair.returns[0] > sum(returns) / len(returns) > pair.returns[1]
        assert [stream.episode for stream in pair.streams] == [0, 1]
        assert num_units(found, "pair") == 1


def test_training_prefers_the_better_episode_and_stays_near_the_start():
    network, reference = tiny_network(seed=1), tiny_network(seed=1)
    trainer = trainer_of(network, reference, rl(loss={"name": "dpo"}, learning_rate=1e-2, updates_per_round=1))
    group = group_of([tokens(1, first=10), tokens(1, first=20)], [1.0, 0.0])
    first, *_, last = [trainer.train([group]) for _ in range(5)]
    assert first["loss"] == pytest.approx(0.6931, abs=1e-3)
    assert last["loss"] < first["loss"]
    assert last["preferred"] == 1


def test_a_round_without_pairs_changes_nothing():
    network = tiny_network(seed=1)
    before = [weight.clone() for weight in network.parameters()]
    trainer = trainer_of(network, tiny_network(seed=1), rl(loss={"name": "dpo"}))
    assert trainer.train([group_of([tokens(1), tokens(1)], [1.0, 1.0])]) == {}
    assert all(torch.equal(one, other) for one, other in zip(before, network.parameters(), strict=True))
