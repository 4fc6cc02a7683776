"""Diversity-aware rewards, by hand."""

import pytest

from models.methods.method import NoOptions
from models.methods.rewards.darling import Darling
from schemas.records import AgentTask, Step, Trajectory, Turn

TASK = AgentTask("t", "do it", "train", "f")


def episode(*actions: str, wins: bool = True) -> Trajectory:
    ends = [number == len(actions) - 1 for number in range(len(actions))]
    steps = [Step("next", float(wins and end), done=end, success=wins and end) for end in ends]
    return Trajectory(TASK, "dream", [Turn("s", action, step) for action, step in zip(actions, steps, strict=True)])


def returns(*group: Trajectory) -> list[float]:
    return [sum(turns) for turns in Darling(NoOptions()).rewards(group)]


def test_a_win_counts_by_the_share_of_others_that_acted_otherwise():
    # two of four act alike: 2 of 3 others differ; all 3 differ from the single ones
    group = episode("cut", "cook"), episode("cut", "cook"), episode("cook", "cut"), episode("eat", wins=False)
    assert returns(*group) == pytest.approx([2 / 3, 2 / 3, 1.0, 0.0])


def test_where_all_act_alike_the_outcome_stays():
    assert returns(episode("cook"), episode("cook")) == [1.0, 1.0]
