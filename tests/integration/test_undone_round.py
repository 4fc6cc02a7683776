"""A round whose update goes too far is undone; one that does not go so far is measured and kept."""

from dataclasses import replace

import pytest
import torch

from infra.environments.by_name import open_environment
from models.generation.torch_engine import TorchEngine
from models.network.transformer import weights_of
from models.rollout.rollouts import Rollout
from models.training.trained_logprobs import divergence
from schemas.recipes.recipe import Recipe
from schemas.records import Tokens
from tasks.learning.train_policy import train_policy
from tasks.running.artifacts import get_frozen_model, put_trajectories
from tests.rollouts import plain_policy, rollout_options
from tests.training import group_of

RECIPE = Recipe(name="bounded")


@pytest.fixture
def groups(policy):
    """Store a group of eight episodes, of which every other one is said to have won."""
    model, environment = get_frozen_model(policy), open_environment(RECIPE.environment)
    (task,) = environment.tasks("train", 1)
    engine, options = TorchEngine(weights_of(model.network, torch.float32), 0), rollout_options(max_steps=3)
    format = plain_policy(model.format, remember_episode=False)
    played = Rollout(engine, format, environment, "dream", options).play([task] * 8)

    def ended(number: int, episode):
        last = episode.turns[-1]
        won = replace(last, step=replace(last.step, reward=float(number % 2), done=True, success=bool(number % 2)))
        return replace(episode, group_id="one", turns=[*episode.turns[:-1], won], truncated=False)

    return put_trajectories([ended(number, episode) for number, episode in enumerate(played)])


def trained(policy, groups, **fields):
    rl = RECIPE.rl.model_copy(update={"temperature": 1.0, "warmup_updates": 0, **fields})
    return train_policy.__wrapped__(policy, policy, [groups], rl, RECIPE.training, RECIPE.environment, "dream", 0)


def test_a_round_within_the_bound_is_kept_and_measured(policy, groups):
    kept = trained(policy, groups, learning_rate=1e-5, max_kl=0.1)
    assert kept["policy"] != policy
    assert 0 < kept["metrics"]["kl_of_round"] < 0.1
    assert "undone" not in kept["metrics"]
    assert "kl_of_round" not in trained(policy, groups, learning_rate=1e-5)["metrics"]


def test_a_round_that_goes_too_far_is_undone(policy, groups):
    far = trained(policy, groups, learning_rate=0.1, max_kl=0.1)
    assert far["policy"] == policy
    assert far["metrics"]["undone"] == 1
    assert not far["metrics"]["kl_of_round"] <= 0.1


def test_the_divergence_is_that_of_the_tokens_probabilities(policy):
    network = get_frozen_model(policy).network
    ids, acts = [5, 6, 7, 8], [False, False, True, True]
    with torch.no_grad():
        table = torch.log_softmax(network(torch.tensor([ids])).logits[0].float(), -1)
    exact = [0.0, 0.0, float(table[1, 7]), float(table[2, 8])]
    same = group_of([Tokens(ids, acts, exact)] * 2, [1.0, -1.0])
    assert divergence(network, [same], 1.0, 4_000) == pytest.approx(0, abs=1e-3)
    off = group_of([Tokens(ids, acts, [0.0, 0.0, exact[2] - 1, exact[3] + 1])] * 2, [1.0, -1.0])
    by_hand = ((2.718281828 - 1 - 1) + (0.367879441 - 1 + 1)) / 2
    assert divergence(network, [off], 1.0, 4_000) == pytest.approx(by_hand, abs=0.05)
