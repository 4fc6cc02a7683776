"""Calibration of dream against real, and teacher-forced fidelity, on numbers worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.measurement.calibration import calibrate, replay
from models.measurement.fidelity import fidelity
from models.measurement.one_step import OneStepErrors, one_step_errors
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


def one_step(*pairs: tuple[Step, Step], lengths: list[int]) -> OneStepErrors:
    found = one_step_errors([(Turn("", "go", dream), real) for dream, real in pairs], lengths)
    assert found is not None
    return found


def test_one_step_errors_and_lemma_1_by_hand():
    won, lost = Step("- n: 4", 1.0, done=True, success=True), Step("- n: 4", 0.0, done=True, success=False)
    same, other = (step("1"), step("1")), (step("2"), step("3"))
    found = one_step(same, other, (won, lost), (step("5", "loss"), step("5")), lengths=[3, 5, 4])
    # one of four rewards is wrong by 1; one next state, and one end; gamma = 1 - 1/4:
    # 0.25 * 4 + 2 * 0.75 * 0.5 * 16
    assert (found.reward, found.state, found.horizon) == (0.25, 0.5, 4)
    assert found.bound == pytest.approx(1 + 12)
    assert found.metrics() == {
        "one_step_reward_error": 0.25,
        "one_step_state_error": 0.5,
        "num_compared_steps": 4,
        "effective_horizon": 4,
        "lemma1_bound": pytest.approx(13),
    }


def test_an_episode_of_one_step_is_wrong_by_its_reward_alone():
    assert OneStepErrors(0.3, 0.9, 10, horizon=1.0).bound == pytest.approx(0.3)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1, 200))
def test_lemma_1_bounds_nothing_by_nothing_and_grows_with_each_error(reward, state, horizon):
    assert OneStepErrors(0.0, 0.0, 1, horizon).bound == 0
    bound = OneStepErrors(reward, state, 1, horizon).bound
    assert bound >= reward
    assert bound <= OneStepErrors(reward, state, 1, horizon + 1).bound + 1e-9
    assert bound <= OneStepErrors(min(1.0, reward + 0.1), min(1.0, state + 0.1), 1, horizon).bound


def test_only_steps_from_the_same_state_are_errors_of_one_step():
    dreams = [
        dreamt(("wait", "- count: 1", False), ("wait", "- count: 7", False), ("win", "- count: 8", True)),
        dreamt(("win", "- count: 1", False)),
        dreamt(("wait", "", False), failure=Failure.UNPARSABLE),
    ]
    real = [dreamt(("wait", "", False), ("win", "", True)), dreamt(("win", "", True)), dreamt(("win", "", True))]
    found = calibrate(dreams, replay(dreams, Counter()), real).metrics()
    # right, wrong state; the third step is from another state. The refused win is wrong by 1 and goes on
    assert found["num_compared_steps"] == 3
    assert found["one_step_state_error"] == pytest.approx(2 / 3)
    assert found["one_step_reward_error"] == pytest.approx(1 / 3)
    assert found["effective_horizon"] == pytest.approx(4 / 3)
    # gamma = 1/4: 1/3 * 4/3 + 2 * 1/4 * 2/3 * 16/9
    assert found["lemma1_bound"] == pytest.approx(4 / 9 + 16 / 27)


def test_dreams_that_hold_have_a_bound_of_0():
    dreams = [dreamt(("wait", "- count: 1", False), ("win", "- count: 2", True))]
    found = calibrate(dreams, replay(dreams, Counter()), dreams).metrics()
    assert (found["one_step_reward_error"], found["one_step_state_error"], found["lemma1_bound"]) == (0, 0, 0)


def test_without_a_compared_step_there_is_no_bound():
    broken = [dreamt(("wait", "", False), failure=Failure.UNPARSABLE)]
    assert "lemma1_bound" not in calibrate(broken, replay(broken, Counter()), broken).metrics()
