"""Rubric for predictions: what is asked, what is read, means and agreement with replays, on numbers worked by hand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.measurement.one_step import compared_steps
from models.measurement.rubric import DIMENSIONS, Prediction, read_scores, rubric_question
from models.measurement.rubric_summary import mean_scores, replay_agreement
from models.rollout.chat_network import ChatNetwork
from models.text.prompts import PromptFormat
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from schemas.sampling import Sampled
from tests.chat import chat_tokenizer
from tests.rollouts import Speaker

TASK = AgentTask("t", "fry the carrot", "train", "f")


def scores(*values: int) -> dict[str, int]:
    return dict(zip(DIMENSIONS, values, strict=True))


def answer(**changed) -> str:
    return json.dumps({"rubric_scores": {**scores(2, 1, 0, 2), **changed}})


def step(state: str, *, done: bool = False, failure: Failure | None = None) -> Step:
    return Step(f"- n: {state}", 0.0, done=done, success=False, failure=failure)


def test_the_judge_sees_task_state_action_next_state_and_outcome():
    won = Step("- carrot: fried", 1.0, done=True, success=True, reasoning="secret", demonstrations=("hidden",))
    episode = Trajectory(TASK, "dream", [Turn("- carrot: raw", "fry carrot", won)])
    question = rubric_question(Prediction.of(episode, 0))
    assert question.user == (
        "**Task Instruction:**\nfry the carrot\n\n**State Before:**\n- carrot: raw\n\n**Action:**\nfry carrot\n\n"
        "**Predicted Next State:**\n- carrot: fried\n\n**Predicted Outcome:**\nsuccess"
    )
    assert all(f"- {name}:" in question.system for name in DIMENSIONS)


@given(st.tuples(*[st.integers(0, 2)] * 4))
def test_scores_are_read_from_fences_and_after_thoughts(values):
    written = json.dumps({"rubric_scores": scores(*values)}, indent=1)
    assert read_scores(written) == scores(*values)
    assert read_scores(f"<think>{{not yet}}</think>\nHere:\n```json\n{written}\n```") == scores(*values)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would say 2.",
        answer(diversity=3),
        answer(diversity=-1),
        answer(diversity=1.5),
        answer(diversity=True),
        answer(diversity=None),
        json.dumps(scores(2, 2, 2, 2)),
        json.dumps({"rubric_scores": {"diversity": 2}}),
    ],
)
def test_no_other_answer_is_a_score(text):
    assert read_scores(text) is None


def test_means_and_intervals_by_hand():
    found = mean_scores([scores(2, 2, 1, 0), scores(0, 2, 2, 0), scores(0, 2, 0, 0), scores(2, 2, 1, 0)])
    assert {name: one["mean"] for name, one in found.items()} == scores(1, 2, 1, 0)
    # all of 4: low = 2 * 4 / (4 + 1.95996^2)
    assert (found["diversity"]["low"], found["diversity"]["high"]) == (pytest.approx(8 / 7.84146, abs=1e-4), 2)
    # 1, 2, 0, 1: sd sqrt(2/3), t(0.975, 3) = 3.18245: 1 -+ 3.18245 * 0.81650 / 2, which is cut at 0 and 2
    assert (found["informativeness"]["low"], found["informativeness"]["high"]) == (0, 2)
    many = mean_scores([scores(0, 1, 1, 2), scores(1, 1, 1, 2)] * 50)["causal_consistency"]
    # sd 0.50252, t(0.975, 99) = 1.98422, over 10
    assert (many["mean"], many["low"], many["high"]) == pytest.approx((0.5, 0.40029, 0.59971), abs=1e-5)
    assert mean_scores([]) == {}


def test_a_judge_that_sees_errors_scores_what_holds_higher():
    known = [(scores(2, 2, 2, 2), True), (scores(2, 1, 1, 2), True), (scores(0, 1, 1, 0), False)]
    found = replay_agreement([*known, (scores(0, 0, 0, 0), False)])
    assert (found["num_held"], found["num_wrong"]) == (2, 2)
    assert found["held"]["mean"] == pytest.approx(1.75)
    assert found["wrong"]["mean"] == pytest.approx(0.25)
    assert found["difference"]["mean"] == pytest.approx(1.5)
    assert found["difference"]["low"] < 1.5 < found["difference"]["high"]
    assert replay_agreement(known[:2]) == {"num_held": 2, "num_wrong": 0}


def test_steps_are_compared_up_to_the_first_other_state():
    def compared(*dreamt: Step, real: list[Step]) -> list[tuple[str, str]]:
        turns = [Turn("", "go", one) for one in dreamt]
        return [(turn.step.state[-1], one.state[-1]) for turn, one in compared_steps(turns, real)]

    real = [step("1"), step("2"), step("3", done=True)]
    assert compared(step("1"), step("9"), step("3"), real=real) == [("1", "1"), ("9", "2")]
    assert compared(step("1"), step("2"), step("3"), real=real) == [("1", "1"), ("2", "2"), ("3", "3")]
    assert compared(step("1"), real=real) == [("1", "1")]
    assert compared(step("1"), step("2", failure=Failure.UNPARSABLE), real=real) == [("1", "1")]
    assert compared(step("1"), step("2"), real=[step("1", failure=Failure.ENVIRONMENT)]) == []


def test_a_network_of_ours_answers_as_an_endpoint_does():
    format, met = PromptFormat(chat_tokenizer()), []
    end = format.tokenizer.convert_tokens_to_ids("<|im_end|>")
    spoken = Sampled([*format.ids(answer()), end], [], ended=True)
    cut_off = Sampled(format.ids(answer()[:40]), [], ended=False)
    short, long = (
        rubric_question(Prediction("do it", "- n: 1", "go " * length, "- n: 2", "continue")) for length in (1, 9000)
    )
    judge = ChatNetwork(Speaker([spoken, cut_off]), format, 4_000, 40, met.append)
    texts = judge.answer([short, long, short], lambda _, text: read_scores(text) is not None)
    assert [read_scores(text) for text in texts] == [scores(2, 1, 0, 2), None, None]
    assert met == [{"questions longer than 4000 tokens": 1, "answers longer than 40 tokens": 1}]
