"""Real environment that fails: its episodes are played anew, and do not count against a policy."""

import pytest

from infra.context import replay_store, run_context
from infra.environments.by_name import open_environment
from infra.environments.cooking.environment import CookingEnvironment
from models.measurement.calibration import replay
from schemas.errors import EnvironmentUnavailable
from schemas.recipes.judging import EvaluationRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import Failure
from tasks.judging.evaluate import evaluate
from tasks.playing.play import play_real

pytestmark = pytest.mark.integration
RECIPE = Recipe(name="failing").play
TWICE = EvaluationRecipe(temperature=1.0, episodes_per_task=2)


def fail(monkeypatch, num_times: int) -> None:
    """Make the first `num_times` steps in TextWorld raise."""
    rightly, failures = CookingEnvironment._play, iter(range(num_times))

    def play(episode, action):
        if next(failures, None) is not None:
            raise OSError("the game is gone")
        return rightly(episode, action)

    monkeypatch.setattr(CookingEnvironment, "_play", staticmethod(play))


def test_episodes_in_which_it_failed_are_played_anew(policy, monkeypatch):
    tasks = open_environment(RECIPE.environment).tasks("valid", 4)
    fail(monkeypatch, 5)
    episodes = play_real("evaluate", policy, RECIPE, tasks, 0.0, 0)
    assert [episode.task for episode in episodes] == tasks
    assert not any(episode.failure for episode in episodes)
    assert run_context().display.time.stage_failures == {"evaluate": {Failure.ENVIRONMENT: 5}}
    undisturbed = play_real("evaluate", policy, RECIPE, tasks, 0.0, 0)
    assert [episode.actions for episode in episodes] == [episode.actions for episode in undisturbed]


def test_replays_in_which_it_failed_are_counted(policy, monkeypatch):
    def failing_replay(*arguments):
        fail(monkeypatch, 2)
        return replay(*arguments)

    monkeypatch.setattr("tasks.judging.evaluate.replay", failing_replay)
    evaluate.__wrapped__("evaluate start", policy, policy, [], RECIPE, TWICE, "valid", 3, 0)
    failures = run_context().display.time.stage_failures
    assert failures["replays"] == {Failure.ENVIRONMENT: 2}
    dreamt = [row["dream_success"] for row in replay_store().read("evaluations")]
    num_broken = sum(failures.get("evaluate start dream", {}).values())
    assert (dreamt.count(None), dreamt.count(False)) == (num_broken, 6 - num_broken), "a broken dream has no outcome"


def test_one_that_fails_for_good_is_no_verdict_on_a_policy(policy, monkeypatch):
    tasks = open_environment(RECIPE.environment).tasks("valid", 3)
    fail(monkeypatch, 10_000)
    episodes = play_real("evaluate", policy, RECIPE, tasks, 0.0, 0)
    assert {episode.failure for episode in episodes} == {Failure.ENVIRONMENT}
    with pytest.raises(EnvironmentUnavailable, match=r"failed in 6 of 6 episodes.*OSError: the game is gone"):
        evaluate.__wrapped__("evaluate start", policy, policy, [], RECIPE, TWICE, "valid", 3, 0)
