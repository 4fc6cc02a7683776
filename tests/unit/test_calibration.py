"""Calibration of dream against real, and teacher-forced fidelity, on numbers worked by hand."""

import pytest

from models.measurement.calibration import calibrate, replay
from models.measurement.fidelity import fidelity
from models.retrieval.encoders import HashingEncoder
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn

TASK = AgentTask("t", "do it", "valid", "f")


class Counter:
    """Real environment that counts its steps and is won by `win`."""

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
    """Return an episode of (action, dreamt state, dreamt success)."""
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
    real = [dreamt(("win", "", won)) for won in (True, False, False, True)]
    found = calibrate(dreams, replays, real)
    assert found.outcome_agreement == pytest.approx(1 / 3), "one granted wrongly, one refused wrongly, one broken"
    assert found.state_agreement == pytest.approx(3 / 4)
    assert (found.win_precision, found.win_recall) == (1 / 2, 1 / 2)
    # wins are 2 of 3 in both, so that 5/9 agree by chance: (1/3 - 5/9) / (4/9)
    assert found.outcome_kappa == pytest.approx(-1 / 2)
    assert found.real_success == 1 / 2
    assert found.dream_real_gap == pytest.approx(2 / 3 - 1 / 3), "without the task whose dream broke"
    assert found.num_replayed_steps == 5


def test_what_cannot_be_measured_is_no_metric():
    lost = [dreamt(("wait", "- count: 1", False))]
    found = calibrate(lost, replay(lost, Counter()), [*lost, dreamt(("win", "", True))])
    assert not found.metrics().keys() & {"win_precision", "win_recall"}
    assert (found.real_success, found.dream_real_gap) == (1 / 2, 0), "further real episodes are none of the dream's"


def test_a_replay_in_which_the_environment_failed_says_nothing_of_its_dream():
    dreams = [dreamt(("win", "- count: 1", True)), dreamt(("wait", "- count: 1", False))]
    held, broken = replay(dreams, Counter())
    broken[-1] = step("lost", "loss", Failure.ENVIRONMENT)
    found = calibrate(dreams, [held, broken], dreams)
    assert (found.outcome_agreement, found.state_agreement, found.dream_success) == (1, 1, 1 / 2)


class Foretells:
    """Experience model whose predictions the test has written."""

    def __init__(self, *steps: Step):
        self.predict = lambda _situations: list(steps)


def step(state: str, outcome: str = "continue", failure: Failure | None = None) -> Step:
    return Step(f"- count: {state}", 0.0, done=outcome != "continue", success=outcome == "win", failure=failure)


def test_fidelity_by_hand():
    truth = [step("1", "loss"), step("2", "loss"), step("3", "win"), step("4"), step("5")]
    told = [step("1", "loss"), step("2"), step("3", "win"), step("9", "loss"), step("5", "loss", Failure.UNPARSABLE)]
    found = fidelity(Foretells(*told), [], truth, HashingEncoder())
    assert found["state_exact"] == pytest.approx(4 / 5)
    assert 4 / 5 < found["state_similarity"] < 1
    assert found["unparsable"] == pytest.approx(1 / 5)
    assert (found["loss_precision"], found["loss_recall"]) == (1 / 2, 1 / 2), "the broken one foretells no loss"
    assert (found["done_precision"], found["done_recall"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert (found["success_precision"], found["success_recall"]) == (1, 1)


def test_fidelity_leaves_out_rates_without_cases():
    found = fidelity(Foretells(step("1")), [], [step("1")], HashingEncoder())
    assert not [name for name in found if name.endswith(("precision", "recall"))]
