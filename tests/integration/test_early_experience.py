"""Early Experience in a run: it takes as many updates as cloning alone, and real steps are counted."""

import pytest

from infra.environments.by_name import open_environment
from models.rollout.behaviour_policies import collect
from schemas.recipes.recipe import Recipe
from tasks.data.annotate import annotate
from tasks.learning.clone_policy import clone_policy
from tasks.learning.learn_consequences import learn_consequences
from tasks.playing.try_alternatives import try_alternatives
from tasks.running.artifacts import get_trajectories, put_trajectories

pytestmark = pytest.mark.integration
RECIPE = Recipe(
    name="early",
    environment={"num_train_tasks": 4},
    start={"renamed_copies": 1, "sft": {"epochs": 2}, "early_experience": {"alternatives": 2}},
)


@pytest.fixture
def logs(in_a_cycle):
    real = open_environment(RECIPE.environment)
    return put_trajectories(collect(real, real.tasks("train", 4), [0.0], 0, RECIPE.environment.max_steps))


def cloned(policy, logs, *alternatives):
    asked = (RECIPE.start, RECIPE.policy, RECIPE.training, RECIPE.environment, 0, (), alternatives)
    return clone_policy.__wrapped__(policy, [logs], *asked)


def test_the_updates_of_world_model_and_reflections_are_those_of_cloning_alone(policy, logs):
    tried = try_alternatives.__wrapped__([logs], RECIPE.real_play)
    in_all = sum(len(one.turns) for one in get_trajectories(logs))
    assert tried.notes["num_states"] == in_all
    assert tried.notes["num_episodes"] == 2 * in_all
    told = annotate.__wrapped__(tried, RECIPE.annotate, RECIPE.environment, RECIPE.retrieval, 0, store=False)
    knowing = learn_consequences.__wrapped__(
        policy, [logs], tried, RECIPE.start, RECIPE.policy, RECIPE.training, RECIPE.environment, 0
    )
    alone, both = cloned(policy, logs), cloned(knowing, logs, told)
    taken = knowing.notes["updates_taken_from_cloning"]
    assert 0 < taken < alone.notes["num_updates"]
    assert both.notes["num_updates"] + taken == alone.notes["num_updates"]
    assert both.sha256 not in (cloned(knowing, logs).sha256, alone.sha256)


def test_the_same_actions_are_tried_again_and_for_real(policy, logs):
    first, again = (try_alternatives.__wrapped__([logs], RECIPE.real_play) for _ in range(2))
    assert first == again
    walked, longest = sum(len(one.turns) for one in get_trajectories(logs)), RECIPE.policy.history_length + 1
    replayed = sum(2 * number for one in get_trajectories(logs) for number in range(1, len(one.turns) + 1))
    assert first.notes["num_real_steps"] == walked + replayed
    assert max(len(one.turns) for one in get_trajectories(first)) == longest
