"""Step advantages of lost groups by hand: where episodes part, and what each action changes."""

from dataclasses import replace

import pytest

from models.methods.advantages.vine import Vine, VineOptions
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from tasks.playing.value_states import values_of

TASK = AgentTask("t", "cook", "train", "one", initial_state="s0")


def episode(*moves: tuple[str, str, str], won: bool = False) -> Trajectory:
    """Return an episode of (state, action, next state); the last step ends it."""
    last = len(moves) - 1
    turns = [
        Turn(state, action, Step(after, float(won and n == last), n == last, won and n == last))
        for n, (state, action, after) in enumerate(moves)
    ]
    return Trajectory(TASK, "dream", turns, group_id="g")


LEFT = episode(("s0", "a", "s1"), ("s1", "left", "s2"), ("s2", "b", "lost"))
RIGHT = episode(("s0", "a", "s1"), ("s1", "right", "s3"), ("s3", "b", "lost"))


def rewards(group):
    return [[turn.step.reward for turn in one.turns] for one in group]


def test_states_at_forks_and_after_them_are_asked_for_once():
    asked = Vine(VineOptions()).states_to_value([[LEFT, RIGHT, LEFT]])
    assert [one.initial_state for one in asked] == ["s1", "s2", "s3"]
    assert {one.parent_id for one in asked} == {"t"}
    assert all(one.is_snapshot for one in asked)
    assert len(Vine(VineOptions(max_states=2)).states_to_value([[LEFT, RIGHT]])) == 2


def test_an_action_is_worth_what_it_changes():
    method = Vine(VineOptions())
    method.values = {("t", "s1"): 0.5, ("t", "s2"): 0.875, ("t", "s3"): 0.125}
    assert method.advantages([LEFT, RIGHT], rewards([LEFT, RIGHT])) == [[0.0, 0.375, -0.875], [0.0, -0.375, -0.125]]


def test_groups_that_won_or_broke_are_grpos():
    won = episode(("s0", "a", "s1"), ("s1", "left", "won"), won=True)
    method = Vine(VineOptions(negative_scale=1.0))
    assert method.states_to_value([[LEFT, won], [LEFT, replace(RIGHT, failure=Failure.TOO_LONG)]]) == []
    (up, *_), (down, *_) = method.advantages([won, LEFT], rewards([won, LEFT]))
    assert up == pytest.approx(-down)
    assert up > 0


def test_without_values_a_lost_group_teaches_nothing():
    assert Vine(VineOptions()).advantages([LEFT, RIGHT], rewards([LEFT, RIGHT])) == [[0.0] * 3] * 2


def test_a_value_is_the_share_of_whole_dreams_that_win():
    asked = Vine(VineOptions()).states_to_value([[LEFT, RIGHT]])
    won, broken = episode(("s1", "a", "won"), won=True), replace(LEFT, failure=Failure.UNPARSABLE)
    assert values_of(asked, [[won, LEFT], [won, broken], [broken, broken]]) == {("t", "s1"): 0.5, ("t", "s2"): 1.0}
