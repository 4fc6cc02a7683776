"""Errors of a dream, and the share of it that is played for real."""

import random

import pytest

from models.rollout.refit_sampling import sampling_shares, transition_errors
from schemas.records import AgentTask, Step, Trajectory, Turn
from tasks.learning.fit_experience_model import new_and_replayed


def step(state: str, *, done=False, success=False) -> Step:
    return Step(state, float(success), done, success)


def dream_of(*steps: Step) -> Trajectory:
    return Trajectory(AgentTask("t", "do it", "train", "f"), "dream", [Turn("- a: b", "act", one) for one in steps])


def test_shares_of_three_errors_by_hand():
    assert sampling_shares([0, 1, 1]) == pytest.approx([0.05 / 2.15, 1.05 / 2.15, 1.05 / 2.15])
    assert sampling_shares([0, 0]) == [0.5, 0.5]


def test_a_wrong_outcome_counts_one_and_a_wrong_state_less_the_more_lines_differ():
    dreamt = dream_of(step("- a: c"), step("- a: c\n- d: e"), step("- a: x\n- d: y\n- f: z", done=True, success=True))
    replayed = [step("- a: c"), step("- a: c\n- d: f"), step("- a: c\n- d: e\n- f: g")]
    assert transition_errors(dreamt, replayed) == pytest.approx([0, 1 / 2, 1 + 1 / 4])


def test_what_the_replay_did_not_reach_is_no_error():
    assert transition_errors(dream_of(step("- a: c"), step("- a: d")), [step("- a: c", done=True)]) == [1.0]


def episodes(*names: str) -> list[Trajectory]:
    return [
        Trajectory(AgentTask(name, "do it", "train", "f"), "real", [Turn("- a: b", "act", step("- a: c"))])
        for name in names
    ]


@pytest.mark.parametrize(("share", "num_replayed"), [(0.0, 0), (0.5, 2), (0.25, 1), (0.9, 4)])
def test_of_what_was_learnt_so_many_come_again_that_they_are_the_share(share, num_replayed):
    learnt = episodes("a", "b", "c", "d")
    shown = new_and_replayed([*learnt, *episodes("x", "y")], learnt, share, random.Random(0))
    assert [one.task.task_id for one in shown[:2]] == ["x", "y"]
    assert len(shown) == 2 + num_replayed
    assert {one.task.task_id for one in shown[2:]} <= {"a", "b", "c", "d"}


def test_everything_is_new_to_a_backbone_and_nothing_to_who_has_learnt_it():
    learnt = episodes("a", "b")
    assert new_and_replayed(learnt, [], 0.5, random.Random(0)) == learnt
    assert new_and_replayed(learnt, learnt, 0.5, random.Random(0)) == []
