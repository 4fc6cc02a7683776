"""Evaluation of a policy: the episodes that are played, and how they are counted and stored."""

import os
from itertools import cycle as repeat
from typing import Any

import pytest

from infra.context import replay_store
from infra.environments.cooking.environment import CookingEnvironment
from infra.running.processes import end_processes
from schemas.recipes.judging import EvaluationRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import Step
from tasks.judging.evaluate import evaluate
from tasks.running.artifacts import get_trajectories
from tests.fresh import reset_context
from tests.left_processes import workers_of

pytestmark = pytest.mark.integration
THRICE = EvaluationRecipe(temperature=1.0, episodes_per_task=3)


def end_at_once(monkeypatch, outcomes) -> None:
    """Make every episode in TextWorld end at its first step, with the next of these outcomes, repeated endlessly."""
    coming = repeat(outcomes)

    def play(episode, _action):
        won = next(coming)
        return Step(episode.state, float(won), done=True, success=won)

    monkeypatch.setattr(CookingEnvironment, "_play", staticmethod(play))


def test_success_of_a_task_is_the_share_of_its_episodes(policy, monkeypatch):
    end_at_once(monkeypatch, [True, False, True, False, False, False])
    play = Recipe(name="thrice").play
    measured = evaluate.__wrapped__("evaluate start", policy, policy, [], play, THRICE, "valid", 4, 0)
    assert list(measured["successes"].values()) == [2 / 3, 0, 2 / 3, 0]
    assert measured["real_success"] == pytest.approx(1 / 3)
    assert measured["interval_low"] < 1 / 3 < measured["interval_high"]
    rows = replay_store().read("evaluations")
    assert [row["real_success"] for row in rows].count(True) == 4
    assert len({row["row_id"] for row in rows}) == 12
    samples = get_trajectories(measured["samples"])
    assert [one.task.task_id for one in samples] == 2 * list(measured["successes"])


def test_parts_are_played_in_processes_with_the_same_outcome(policy, monkeypatch):
    play, whole = (
        Recipe.model_validate({"name": "parted", "environment": {"max_steps": 3}}).play,
        EvaluationRecipe(max_dreamt_tasks=4),
    )
    parted = whole.model_copy(update={"num_shards": 2})
    alone = evaluate.__wrapped__("evaluate start", policy, policy, [], play, whole, "valid", 5, 0)
    monkeypatch.setenv("DREAMGYM_NUM_THREADS", "2")
    reset_context()
    together = evaluate.__wrapped__("evaluate start", policy, policy, [], play, parted, "valid", 5, 0)
    assert len(workers_of(os.getpid())) == 2
    end_processes()
    assert acted(together) == acted(alone)
    assert together == alone


def acted(measured: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Take the samples out of an evaluation, and return their tasks and actions."""
    samples = get_trajectories(measured.pop("samples"), measured.pop("replayed_samples"))
    return [(one.task.task_id, one.actions) for one in samples]
