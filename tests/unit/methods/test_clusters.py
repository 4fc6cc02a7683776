"""Reward entropy of clusters of similar tasks."""

import pytest

from models.methods.curricula import Curriculum, open_curriculum, tasks_to_vary
from schemas.recipes.methods import CurriculumMethodRecipe
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn

COOKING, CLEANING = "cook a fried carrot\nin the kitchen", "clean the dusty window\nin the bathroom"


def episode(task_id: str, kind: str, reward: float, failure: Failure | None = None) -> Trajectory:
    task = AgentTask(task_id, kind.splitlines()[0], "train", "f")
    step = Step("s", reward, done=True, success=reward > 0)
    return Trajectory(task, "dream", [Turn(kind, "a", step)], failure=failure)


def observed(*episodes: Trajectory, **options) -> Curriculum:
    curriculum = open_curriculum(CurriculumMethodRecipe(name="clusters", **options), {})
    curriculum.observe(episodes)
    return curriculum


def test_similar_tasks_are_compared_by_hand():
    cooked = [episode(f"cook {number}", COOKING, reward) for number, reward in enumerate([1, 1, 0, 0, 1, 0, 0, 0])]
    cleaned = [episode(f"clean {number}", CLEANING, 1) for number in range(3)]
    broken = episode("clean 9", CLEANING, 0, Failure.UNPARSABLE)
    curriculum = observed(*cooked, *cleaned, broken, num_clusters=2)
    assert curriculum.entropies["cook 0"] == curriculum.entropies["cook 7"] == pytest.approx(0.234375)
    assert curriculum.entropies["clean 0"] == 0
    assert "clean 9" not in curriculum.entropies
    varied = tasks_to_vary([one.task for one in [*cleaned, *cooked]], curriculum.entropies, 3)
    assert {task.instruction for task in varied} == {"cook a fried carrot"}


def test_its_state_is_saved_and_restored():
    curriculum = observed(episode("a", COOKING, 1), episode("b", COOKING, 0))
    restored = open_curriculum(CurriculumMethodRecipe(name="clusters"), curriculum.state())
    assert restored.entropies == curriculum.entropies == {"a": 0.25, "b": 0.25}


def test_a_round_in_which_every_episode_failed_teaches_nothing():
    assert observed(episode("a", COOKING, 0, Failure.UNPARSABLE)).entropies == {}
