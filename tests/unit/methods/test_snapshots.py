"""Snapshot starts by hand: which state, how far from the end, and of which tasks."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.methods.curricula.snapshots import Snapshots, SnapshotsOptions, snapshot
from schemas.records import AgentTask, Step, Trajectory, Turn

ALWAYS = Snapshots(SnapshotsOptions(share=1.0, first_horizon=1, last_horizon=5))


def task(name: str) -> AgentTask:
    return AgentTask(name, "cook", "train", "one", initial_state="s0")


def win(name: str, num_turns: int) -> Trajectory:
    steps = [Step(f"s{i + 1}", 0.0, False, False) for i in range(num_turns - 1)] + [Step("end", 1.0, True, True)]
    return Trajectory(task(name), "real", [Turn(f"s{i}", f"a{i}", step) for i, step in enumerate(steps)])


def test_two_turns_before_the_end_of_five_is_the_fourth_state():
    start = snapshot(win("t", 5), 2)
    assert (start.initial_state, start.task_id, start.parent_id) == ("s3", "t#2", "t")
    assert start.is_snapshot
    assert start.generated, "no real environment can start it"
    assert not task("t").is_snapshot
    assert not AgentTask("t/generated/1", "cook", "train", "one", parent_id="t").is_snapshot


@pytest.mark.parametrize(("round", "horizon"), [(0, 1), (5, 3), (10, 5)])
def test_the_horizon_grows(round, horizon):
    assert ALWAYS.horizon(round / 10) == horizon


def test_the_shortest_win_counts_and_a_task_without_one_starts_at_its_beginning():
    drawn = [task("t"), task("never won"), task("won at once")]
    wins = [win("t", 5), win("t", 2), win("won at once", 1)]
    starts = ALWAYS.starts(drawn, wins, 1.0, random.Random(0))
    assert [one.task_id for one in starts] == ["t#1", "never won", "won at once"]
    assert starts[0].initial_state == "s1"


@given(st.floats(0.01, 1), st.floats(0, 1), st.integers(0, 5))
def test_about_a_share_starts_within_the_horizon(share, done, seed):
    method = Snapshots(SnapshotsOptions(share=share, first_horizon=2, last_horizon=6))
    drawn = [task(f"t{i}") for i in range(400)]
    starts = method.starts(drawn, [win(one.task_id, 8) for one in drawn], done, random.Random(seed))
    turned = [one for one in starts if one.is_snapshot]
    assert abs(len(turned) / 400 - share) < 0.12
    assert {one.parent_id or one.task_id for one in starts} == {one.task_id for one in drawn}
    assert all(1 <= int(one.task_id.rpartition("#")[2]) <= method.horizon(done) for one in turned)
