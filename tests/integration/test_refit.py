"""Real episodes of a refit: train tasks whose dreams err, with the present policy, every step counted."""

from dataclasses import replace

import pytest

from infra.environments.by_name import open_environment
from models.rollout.behaviour_policies import collect
from schemas.recipes.recipe import Recipe
from schemas.records import Reference, Trajectory
from tasks.playing.play_where_dreams_err import play_where_dreams_err
from tasks.running.artifacts import get_trajectories, put_trajectories

pytestmark = pytest.mark.integration
RECIPE = Recipe(name="refit", environment={"num_train_tasks": 4, "max_steps": 3})


def dreamt(episode: Trajectory, *, wrong: bool) -> Trajectory:
    """Return a dream that holds for real, or one that grants success at its first step."""
    turns = list(episode.turns)
    if wrong:
        turns[0] = replace(turns[0], step=replace(turns[0].step, done=True, success=True, state="- a: b"))
    return replace(episode, origin="dream", turns=turns[:1] if wrong else turns)


@pytest.fixture
def dreams(policy) -> Reference:
    """Store dreams of four tasks, one of them wrong, and of a generated task."""
    real = open_environment(RECIPE.environment)
    tasks = real.tasks("train", 4)
    episodes = collect(real, tasks, [0.0], 0, RECIPE.environment.max_steps)
    told = [dreamt(one, wrong=one.task == tasks[2]) for one in episodes]
    generated = replace(told[0], task=replace(tasks[0], task_id="made up", parent_id=tasks[0].task_id))
    return put_trajectories([*told, generated])


def play(dreams: Reference, policy: Reference, num_episodes: int) -> Reference:
    return play_where_dreams_err.__wrapped__([dreams], policy, RECIPE.real_play, num_episodes, 1.0, 0)


def test_tasks_whose_dreams_err_are_played_most_and_no_other_than_train_tasks(dreams, policy):
    played = play(dreams, policy, 12)
    episodes = get_trajectories(played)
    names = [one.task.task_id for one in episodes]
    assert len(episodes) == 12
    assert all(one.origin == "real" and one.task.split == "train" for one in episodes)
    wrong = get_trajectories(dreams)[2].task.task_id
    assert names.count(wrong) > 6, "its error is 1.5 and theirs are 0"
    assert "made up" not in names


def test_every_real_step_is_counted_those_of_the_replays_too(dreams, policy):
    played = play(dreams, policy, 2)
    episodes = get_trajectories(played)
    replayed = sum(len(one.turns) for one in get_trajectories(dreams)[:4])
    assert played.notes["num_real_steps"] == replayed + sum(len(one.turns) for one in episodes)


def test_the_same_dreams_and_policy_give_the_same_episodes(dreams, policy):
    assert play(dreams, policy, 3).sha256 == play(dreams, policy, 3).sha256
