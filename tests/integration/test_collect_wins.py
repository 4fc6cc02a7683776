"""Wins that a policy is cloned from: the shortest of each task, and dreamt ones only as they hold for real."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from infra.environments.by_name import open_environment
from models.rollout.behaviour_policies import collect
from schemas.recipes.recipe import Recipe
from schemas.records import Reference, Trajectory
from tasks.learning.clone_policy import clone_policy
from tasks.learning.collect_wins import collect_wins
from tasks.running.artifacts import get_trajectories, put_trajectories

pytestmark = pytest.mark.integration
RECIPE = Recipe(name="wins", environment={"num_train_tasks": 4}, start={"renamed_copies": 0, "sft": {"epochs": 0.1}})


@pytest.fixture
def won(in_a_cycle) -> list[Trajectory]:
    """Return the expert's real episodes of four tasks, all won."""
    real = open_environment(RECIPE.environment)
    return collect(real, real.tasks("train", 4), [0.0], 0, RECIPE.environment.max_steps)


def collected(
    episodes: Sequence[Trajectory], earlier: Sequence[Trajectory] = (), *, trust_dreams: bool = False
) -> Reference:
    known = [put_trajectories(earlier)] if earlier else []
    return collect_wins.__wrapped__(known, [put_trajectories(episodes)], RECIPE.environment, trust_dreams)


def longer(episode: Trajectory) -> Trajectory:
    """Return an episode with its first action twice."""
    return replace(episode, turns=[episode.turns[0], *episode.turns])


def dreamt(episode: Trajectory) -> Trajectory:
    return replace(episode, origin="dream")


def too_kind(episode: Trajectory) -> Trajectory:
    """Return a dream that grants success at its first step."""
    first = episode.turns[0]
    return replace(
        episode, origin="dream", turns=[replace(first, step=replace(first.step, done=True, success=True, reward=1.0))]
    )


def test_the_shortest_win_of_each_task_is_kept_and_losses_are_not(won):
    lost = replace(won[3], turns=won[3].turns[:1])
    wins = get_trajectories(collected([won[0], longer(won[1]), lost], earlier=[longer(won[0]), won[1]]))
    assert [(one.task, one.actions) for one in wins] == [(one.task, one.actions) for one in won[:2]]


def test_a_dreamt_win_counts_as_it_went_for_real_and_every_real_step_is_noted(won):
    reference = collected([dreamt(won[0]), too_kind(won[1])])
    [win] = get_trajectories(reference)
    assert (win.origin, win.actions, win.success) == ("real", won[0].actions, True)
    assert reference.notes["num_real_steps"] == len(won[0].turns) + 1
    assert (reference.notes["num_dreamt_wins"], reference.notes["num_confirmed_wins"]) == (2, 1)


def test_no_real_step_is_spent_on_a_dreamt_win_that_is_no_shorter_than_a_real_one(won):
    reference = collected([dreamt(won[0]), too_kind(won[1])], earlier=won[:1])
    assert reference.notes["num_real_steps"] == 1
    assert [one.task for one in get_trajectories(reference)] == [won[0].task]


def test_a_generated_task_cannot_be_replayed(won):
    generated = replace(dreamt(won[0]), task=replace(won[0].task, task_id="made up", parent_id="parent"))
    reference = collected([generated])
    assert reference.notes["num_real_steps"] == 0
    assert get_trajectories(reference) == []
    assert [one.task.task_id for one in get_trajectories(collected([generated], trust_dreams=True))] == ["made up"]


def test_dreamt_wins_may_be_trusted_as_they_are(won):
    reference = collected([too_kind(one) for one in won], trust_dreams=True)
    assert reference.notes["num_real_steps"] == 0
    assert [one.origin for one in get_trajectories(reference)] == ["dream"] * 4


def test_wins_are_cloned_beside_the_demonstrations_however_many_these_are(won, policy):
    start = RECIPE.start.model_copy(update={"num_demonstrations": 1})
    logs, wins = put_trajectories(won[:2]), put_trajectories([longer(won[0]), won[2], won[3]])
    cloned = clone_policy.__wrapped__(
        policy, [logs], start, RECIPE.policy, RECIPE.training, RECIPE.environment, 0, [wins]
    )
    assert cloned.notes["num_demonstrations"] == 3, "the first log, and two more tasks"
