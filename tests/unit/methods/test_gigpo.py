"""Step advantages of GiGPO, by hand."""

import pytest

from models.methods.advantages.gigpo import Gigpo, GigpoOptions
from schemas.records import AgentTask, Step, Trajectory, Turn

TASK = AgentTask("t", "do it", "train", "f")


def episode(*states: str, wins: bool) -> Trajectory:
    ends = [number == len(states) - 1 for number in range(len(states))]
    steps = [Step("next", float(wins and end), done=end, success=wins and end) for end in ends]
    return Trajectory(TASK, "dream", [Turn(state, "act", step) for state, step in zip(states, steps, strict=True)])


def advantages(group: list[Trajectory], **options) -> list[list[float]]:
    rewards = [[turn.step.reward for turn in one.turns] for one in group]
    return Gigpo(GigpoOptions(**options)).advantages(group, rewards)


def test_episode_and_step_advantages_by_hand():
    # returns 0.95, 1 and 0.9025, 0.95, 1 and 0, 0; anchors s0 (mean 0.6175), s1 (1), s2 (0.475); episodes 1, 1, 0
    group = [episode("s0", "s1", wins=True), episode("s0", "s2", "s1", wins=True), episode("s0", "s2", wins=False)]
    first, second, third = advantages(group)
    assert first == pytest.approx([0.6658, 0.3333], abs=1e-4)
    assert second == pytest.approx([0.6183, 0.8083, 0.3333], abs=1e-4)
    assert third == pytest.approx([-1.2842, -1.1417], abs=1e-4)


def test_without_weight_it_is_the_episodes_advantage():
    group = [episode("s0", "s1", wins=True), episode("s0", wins=False)]
    assert advantages(group, step_weight=0) == [[0.5, 0.5], [-0.5]]


def test_a_refused_action_that_leads_back_to_its_state_is_worth_less_than_the_one_that_works():
    group = [episode("s0", "s0", "s0", wins=True), episode("s0", wins=True)]
    repeated, direct = advantages(group)
    assert repeated[0] < repeated[1] < repeated[2]
    assert repeated[2] == pytest.approx(direct[0])


def test_states_met_once_have_no_step_advantage_and_deviations_can_be_divided_by():
    group = [episode("a", "b", wins=True), episode("c", wins=False)]
    # returns 1, 0: half above and below the mean, and a sample deviation of sqrt(1/2)
    assert advantages(group, normalise_std=True)[0] == pytest.approx([0.5 / 0.70721] * 2, rel=1e-4)
