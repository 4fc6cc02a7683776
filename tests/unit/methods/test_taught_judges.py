"""Judges that the experience model is taught to be: what they are shown, what counts after them, and their rewards."""

import random
from dataclasses import replace

import pytest
import torch

from models.examples.reviews import Lesson, Transition, balanced, draw_transitions, review_group
from models.experience.chat_predictor import ChatPredictor
from models.experience.plain_experience import PlainExperience
from models.methods.judges import TaughtJudge, open_judge
from models.network.language_model import load_model
from models.text.prompts import TransitionQuery
from schemas.recipes.methods import JudgeRecipe
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from schemas.sampling import Sampled
from tasks.backbones.find_backbone import SHIPPED
from tests.training import rl, trainer_of
from tests.unit.tiny import tiny_network

TASK = AgentTask("t", "cook", "train", "f")
QUERY = TransitionQuery(TASK, "- oven: off\n- meal: none", "eat meal", ())
WON = Step("- oven: off\n- meal: eaten", 1.0, True, True, "the meal is there")
LOST = Step("- oven: off\n- meal: none", 0.0, True, False, "there is none")
ON = Step("- oven: on\n- meal: none", 0.0, False, False, "it goes on")
NAMES = ("aggregate", "choose", "revise")


def judge_of(name: str, **options) -> TaughtJudge:
    judge = open_judge(JudgeRecipe(name=name, **options))
    assert isinstance(judge, TaughtJudge)
    return judge


def reviewed(judge: TaughtJudge, first: Step, votes: list[Step | None], answer: Step | None) -> tuple[Step, list]:
    """Return the step that counts, and the queries with predictions that were asked."""
    left, asked = iter(votes), []

    def sample(queries):
        if any(one.predictions for one in queries):
            asked.extend(queries)
            return [answer for _ in queries]
        return [next(left) for _ in queries]

    [step] = judge.review([QUERY], [first], sample)
    return step, asked


def test_the_aggregate_may_side_with_the_minority():
    step, [query] = reviewed(judge_of("aggregate"), WON, [WON, WON, LOST], LOST)
    assert step == LOST
    assert query.predictions == (WON, WON, WON, LOST)


def test_predictions_that_all_agree_are_not_aggregated_and_an_unparsable_review_changes_nothing():
    assert reviewed(judge_of("aggregate"), WON, [WON, WON, WON], LOST) == (WON, [])
    step, [query] = reviewed(judge_of("aggregate"), WON, [None, LOST, LOST], None)
    assert step == WON
    assert query.predictions == (WON, LOST, LOST), "one that could not be parsed is not shown"


def test_only_successes_are_reviewed_unless_all_are_asked_for():
    assert reviewed(judge_of("revise"), LOST, [], WON) == (LOST, [])
    assert reviewed(judge_of("revise", only_successes=False), LOST, [], WON)[0] == WON
    broken = replace(LOST, failure=Failure.UNPARSABLE)
    assert reviewed(judge_of("revise", only_successes=False), broken, [], WON) == (broken, [])


def test_a_choice_is_one_of_the_predictions():
    repeated = replace(LOST, reasoning="said otherwise")
    assert reviewed(judge_of("choose"), WON, [WON, LOST, ON], repeated)[0] == LOST
    assert reviewed(judge_of("choose"), WON, [WON, LOST, LOST], ON)[0] == WON


@pytest.mark.parametrize(
    ("name", "review", "first", "truth", "reward"),
    [
        ("aggregate", WON, LOST, WON, 1.0),
        ("aggregate", WON, WON, LOST, 0.0),
        ("revise", WON, LOST, WON, 1.0),
        ("revise", WON, WON, WON, 0.0),
        ("revise", ON, WON, WON, -1.0),
        ("revise", ON, LOST, WON, 0.0),
        ("choose", WON, LOST, LOST, 1.0),
        ("choose", LOST, LOST, LOST, 1.0),
        ("choose", LOST, LOST, ON, 0.0),
    ],
)
def test_rewards_by_hand(name, review, first, truth, reward):
    assert judge_of(name).reward(review, [first], truth) == reward


def test_the_model_is_shown_the_predictions_after_the_action_and_writes_another():
    format = load_model(SHIPPED / "textworld-tiny").format
    plain, shown = (format.decode(format.situation(replace(QUERY, predictions=p))) for p in ((), (WON, LOST)))
    assert shown.removeprefix(plain) == (
        "[think] the meal is there[next]\n- meal: eaten[outcome] success[think] there is none[next]\n[outcome] failure"
        "[action] eat meal"
    )
    lesson = Lesson(Transition(Trajectory(TASK, "real", [Turn(QUERY.state, QUERY.action, LOST)]), 0), QUERY)
    review, prediction = replace(lesson, query=replace(QUERY, predictions=(WON,))).examples(
        PlainExperience(format), with_reasoning=True
    )
    target = [id for id, wanted in zip(review.ids, review.is_target, strict=True) if wanted]
    assert format.decode(target) == "[think] there is none[next]\n[outcome] failure[end]"
    assert target == [id for id, wanted in zip(prediction.ids, prediction.is_target, strict=True) if wanted]
    assert len(review.ids) > len(prediction.ids)


def lesson(*predictions: Step, truth: Step = WON) -> Lesson:
    episode = Trajectory(TASK, "real", [Turn(QUERY.state, QUERY.action, truth)])
    return Lesson(Transition(episode, 0), replace(QUERY, predictions=predictions))


def test_a_lesson_is_hard_if_most_predictions_are_wrong_and_all_hard_ones_are_kept():
    hard, even, easy = lesson(LOST, LOST, WON), lesson(LOST, WON), lesson(WON, WON)
    assert [one.is_hard for one in (hard, even, easy)] == [True, False, False]
    kept = balanced([hard] * 2 + [easy] * 30, random.Random(0))
    assert (kept.count(hard), kept.count(easy)) == (2, 8), "a quarter of all"
    kept = balanced([hard] * 20 + [easy] * 30, random.Random(0))
    assert (kept.count(hard), kept.count(easy)) == (20, 20)


def test_half_of_the_transitions_are_ends_and_failed_episodes_give_none():
    turns = [Turn("- a: b", f"go {number}", ON) for number in range(5)] + [Turn("- a: b", "eat", WON)]
    episodes = [Trajectory(TASK, "real", turns) for _ in range(8)]
    broken = Trajectory(TASK, "real", turns, failure=Failure.ENVIRONMENT)
    drawn = draw_transitions([*episodes, broken], 10, random.Random(0))
    assert [sum(one.truth.done for one in drawn), len(drawn)] == [5, 10]
    assert all(one.episode is not broken for one in drawn)
    assert len(draw_transitions(episodes, 1000, random.Random(0))) == 48


def test_a_better_review_becomes_likelier_and_equal_ones_teach_nothing():
    reviews = [Sampled([7, 8, 9], [-1.0] * 3, True), Sampled([10, 11], [-1.0] * 2, True)]
    assert review_group([1, 2, 3], reviews, [1.0, 1.0], "g") is None
    assert review_group([1, 2, 3], [], [], "g") is None
    group = review_group([1, 2, 3], reviews, [0.0, 1.0], "g")
    for loss in ({"name": "clipped"}, {"name": "dpo"}):
        network = tiny_network(seed=1)
        before = _logprob(network, [1, 2, 3], [10, 11])
        trainer_of(network, tiny_network(seed=1), rl(loss=loss, updates_per_round=1, learning_rate=1e-3)).train([group])
        assert _logprob(network, [1, 2, 3], [10, 11]) > before


def _logprob(network, prompt: list[int], reply: list[int]) -> float:
    with torch.no_grad():
        logprobs = network(torch.tensor([prompt + reply])).logits[0].float().log_softmax(-1)
    return sum(logprobs[len(prompt) + place - 1, id].item() for place, id in enumerate(reply))


def test_a_chat_model_is_told_to_look_for_mistakes_in_the_predictions():
    class Chat:
        def answer(self, questions, is_fine):
            self.asked = questions
            return ['{"reasoning": "there is none", "changes": {}, "outcome": "failure"}' for _ in questions]

    chat = Chat()
    text = ChatPredictor(chat, seed=1).predict([replace(QUERY, predictions=(WON, LOST))], 0.0)
    assert text == ["[think] there is none[next]\n[outcome] failure"]
    (question,) = chat.asked
    assert "earlier predictions" in question.system
    assert (
        "**Earlier Predictions:**\n<think>the meal is there</think>\n<changes>\n- meal: eaten\n</changes>\n"
        "<outcome>success</outcome>\n<think>"
    ) in question.user
    ChatPredictor(chat, seed=1).predict([QUERY], 0.0)
    assert "earlier predictions" not in chat.asked[0].system
    assert "Earlier Predictions" not in chat.asked[0].user
