"""Preferences from logs: the better of two episodes of a task becomes likelier than the worse one."""

from dataclasses import replace

import pytest

from models.examples.preferences import differing, preference_group
from models.examples.supervised import policy_examples
from models.training.sft import sft_loss
from schemas.recipes.recipe import Recipe
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from tasks.learning.learn_preferences import learn_preferences
from tasks.running.artifacts import get_frozen_model, put_trajectories
from tests.rollouts import plain_policy

pytestmark = pytest.mark.integration
TASK = AgentTask("t", "recipe: carrot fried diced", "train", "one")
STATE = "- you: kitchen\n- carrot: held raw uncut"


def logged(action: str, reward: float, task: AgentTask = TASK) -> Trajectory:
    return Trajectory(task, "real", [Turn(STATE, action, Step(STATE, reward, True, reward == 1))])


def trained(policy, episodes, **settings):
    asked = {"pairs_per_task": 8, "learning_rate": 1e-3, **settings}
    recipe = Recipe(name="rated", start={"preferences": asked})
    return learn_preferences.__wrapped__(
        policy,
        [put_trajectories(episodes)],
        recipe.start,
        recipe.policy,
        recipe.start.preferences.updates,
        recipe.training,
        0,
    )


def margin(policy) -> float:
    """Return how much likelier frying is than eating."""
    model = get_frozen_model(policy)
    losses = []
    for action in ("cook carrot with stove", "eat carrot"):
        (example,) = policy_examples(plain_policy(model.format, remember_episode=False), logged(action, 1))
        losses.append(sft_loss(model.network, [example], next(model.network.parameters()).dtype).item())
    return losses[1] - losses[0]


@pytest.mark.parametrize(("better", "worse"), [(1.0, 0.0), (0.6, 0.2)])
def test_the_better_episode_becomes_likelier(policy, better, worse):
    after = trained(policy, [logged("cook carrot with stove", better), logged("eat carrot", worse)])
    assert after.notes["num_pairs"] == 8
    assert after.notes["preferred"] <= 1
    assert margin(after) > margin(policy)


def test_without_a_better_and_a_worse_episode_of_one_task_nothing_is_learnt(policy):
    elsewhere = logged("eat carrot", 0, replace(TASK, task_id="u"))
    failed = replace(logged("eat carrot", 0), failure=Failure.ENVIRONMENT)
    assert trained(policy, [logged("cook carrot with stove", 1), elsewhere, failed]) == policy


def test_a_group_has_the_streams_that_the_policy_would_see(policy):
    format = plain_policy(get_frozen_model(policy).format, remember_episode=False)
    episodes = [logged("cook carrot with stove", 1), logged("eat carrot", 0)]
    group = preference_group(format, differing(episodes)["t"], "t/0")
    assert group.returns == [1, 0]
    assert [stream.episode for stream in group.streams] == [0, 1]
    (example,) = policy_examples(format, episodes[0])
    assert group.streams[0].tokens.ids == example.ids
    assert group.streams[0].tokens.is_action == example.is_target
