"""Calibration of dream against real, and teacher-forced fidelity, on numbers worked by hand."""

import pytest

from models.calibration import calibrate, replay
from models.fidelity import _rates
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn

TASK = AgentTask("t", "do it", "valid", "f")


class Counter:
    """A real environment that counts its steps and is won by `win`."""

    def reset(self, tasks):
        self.num_steps = dict.fromkeys(tasks, 0)
        return dict.fromkeys(tasks, "- count: 0")

    def step(self, actions):
        steps = {}
        for slot, action in actions.items():
            self.num_steps[slot] += 1
            won = action == "win"
            steps[slot] = Step(f"- count: {self.num_steps[slot]}", float(won), done=won, success=won)
        return steps


def dreamt(*turns: tuple[str, str, bool], failure: Failure | None = None) -> Trajectory:
    """An episode of (action, dreamt state, dreamt success)."""
    return Trajectory(
        TASK, "dream", [Turn("", a, Step(s, float(won), done=won, success=won)) for a, s, won in turns], failure=failure
    )


def test_dreams_are_compared_with_their_replay_and_with_real_play_by_hand():
    dreams = [
        dreamt(("wait", "- count: 1", False), ("win", "- count: 2", True)),
        dreamt(("wait", "- count: 9", True)),
        dreamt(("win", "- count: 1", False), ("wait", "- count: 2", False)),
        dreamt(("wait", "", False), failure=Failure.UNPARSABLE),
    ]
    replays = replay(dreams, Counter())
    assert [len(steps) for steps in replays] == [2, 1, 1, 1], "a replay ends when it is really done"
    found = calibrate(dreams, replays, [dreamt(("win", "", True)), dreamt(("wait", "", False))])
    assert found.outcome_agreement == pytest.approx(1 / 3), "one granted wrongly, one refused wrongly, one broken"
    assert found.state_agreement == pytest.approx(3 / 4)
    assert found.gap == pytest.approx(2 / 3 - 1 / 2)
    assert found.num_replayed_steps == 5


def test_rates_by_hand_and_left_out_without_cases():
    assert _rates("loss", [True, True, False], [True, False, True]) == {"loss_precision": 0.5, "loss_recall": 0.5}
    assert _rates("loss", [False], [False]) == {}
