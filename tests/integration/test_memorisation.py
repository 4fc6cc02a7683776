"""Success of the starting policy on the tasks it was cloned from, and on others, from episodes that were played anyway."""

from dataclasses import replace

import pytest

from schemas.recipes.learning import StartRecipe
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from tasks.judging.measure_memorisation import measure_memorisation
from tasks.judging.report_parts.gain import memorised
from tasks.running.artifacts import put_trajectories

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("in_a_cycle")]


def episode(task: str, *, won: bool) -> Trajectory:
    step = Step("state", float(won), done=True, success=won)
    return Trajectory(AgentTask(task, "cook", "train", "kitchen"), "real", [Turn("state", "wait", step)])


def measured(*played: Trajectory, start: StartRecipe) -> dict[str, float]:
    logs = put_trajectories([episode("a", won=False), episode("b", won=True), episode("c", won=True)])
    return measure_memorisation.__wrapped__([logs], put_trajectories(played), start, (1.0, 1.3))


def test_cloned_and_other_tasks_are_told_apart_at_the_first_temperature():
    failed = replace(episode("b", won=False), failure=Failure.ENVIRONMENT)
    first = [episode("b", won=True), failed, episode("a", won=False), episode("c", won=True)]
    hot = [episode(task, won=False) for task in "abc"]
    found = measured(*first, *hot, start=StartRecipe(num_demonstrations=1))
    assert (found["cloned_success"], found["num_cloned"]) == (1.0, 1)
    assert (found["other_success"], found["num_other"]) == (0.5, 2)
    assert 0 < found["other_low"] < 0.5 < found["other_high"] < 1


def test_nothing_is_said_of_tasks_that_were_not_played():
    found = measured(episode("b", won=True), episode("b", won=True), start=StartRecipe(num_demonstrations=2))
    assert found["cloned_success"] == 1.0
    assert "other_success" not in found


def test_the_report_says_it_beside_success_on_valid_tasks():
    measured = {"cloned_success": 0.992, "num_cloned": 120, "other_success": 0.62, "num_other": 80}
    assert memorised(measured, [{"real_success": 0.695}, {"real_success": 0.8}]) == (
        "The starting policy wins 99.2% of 120 episodes of the train tasks it was cloned from, 62.0% of 80 episodes of "
        "other train tasks, and 69.5% of valid tasks."
    )
    assert memorised({"cloned_success": 1.0, "num_cloned": 3}, []) == "", "nothing to compare with"
