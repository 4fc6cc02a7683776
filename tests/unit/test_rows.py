"""Rows of the replay store: when two episodes are one, and the rows of a failed one."""

import pytest

from models.retrieval.encoders import HashingEncoder
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from tasks.data.rows import Provenance, rows_of

TASK = AgentTask("t", "do it", "train", "f")


def episode(origin="real", failure: Failure | None = None) -> Trajectory:
    steps = [Step("- a: c", 0.0, done=False, success=False), Step("- a: d", 1.0, done=True, success=True)]
    return Trajectory(TASK, origin, [Turn("- a: b", "act", step) for step in steps], failure=failure)


def ids(trajectories, provenance) -> list[str]:
    return [row["row_id"] for row in rows_of(trajectories, provenance, HashingEncoder())]


def test_a_log_that_is_imported_twice_is_one():
    assert ids([episode(), episode()], Provenance("r", 0)) == ids([episode()], Provenance("another", 1))


def test_equal_episodes_of_a_policy_are_several_and_written_again_they_are_the_same():
    made_by = Provenance("r", 0, round=1, policy="p")
    twice = ids([episode("dream"), episode("dream")], made_by)
    assert len(set(twice)) == 4
    assert twice == ids([episode("dream"), episode("dream")], made_by)
    assert not set(twice) & set(ids([episode("dream")] * 2, Provenance("r", 0, round=2, policy="p")))


@pytest.mark.parametrize("origin", ["real", "dream"])
def test_a_failed_episode_says_so_and_has_no_reward(origin):
    for row in rows_of([episode(origin, Failure.TOO_LONG)], Provenance("r", 0), HashingEncoder()):
        assert row["failure"] == Failure.TOO_LONG.value
        assert row["real_reward"] is row["dream_reward"] is None


def test_dreamt_and_real_reward_never_share_a_column():
    for origin, other in (("real", "dream"), ("dream", "real")):
        rows = rows_of([episode(origin)], Provenance("r", 0), HashingEncoder())
        assert [row[f"{origin}_reward"] for row in rows] == [0.0, 1.0]
        assert all(row[f"{other}_reward"] is None for row in rows)


def test_no_episodes_are_no_rows():
    assert rows_of([], Provenance("r", 0), HashingEncoder()) == []
