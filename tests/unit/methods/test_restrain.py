"""Soft trust in dreamt successes, by hand."""

import pytest

from models.methods.judges import open_judge
from models.methods.judges.restrain import trust
from models.text.prompts import TransitionQuery
from schemas.recipes.methods import JudgeRecipe
from schemas.records import AgentTask, Step

SITUATION = TransitionQuery(AgentTask("t", "cook", "train", "f"), "- oven: off", "wait", ())
WON, LOST, CONTINUED = Step("a", 1.0, True, True), Step("b", 0.0, True, False), Step("c", 0.0, False, False)


def reviewed(first: Step, votes: list[Step | None], **options) -> Step:
    """Return the judged step; the experience model's further predictions are these votes."""
    left = iter(votes)
    judge = open_judge(JudgeRecipe(name="restrain", num_votes=len(votes) + 1, **options))
    [step] = judge.review([SITUATION], [first], lambda asked: [next(left) for _ in asked])
    return step


def test_trust_by_hand():
    win, loss, on = (True, True), (True, False), (False, False)
    assert trust({win: 0.75, loss: 0.25}, 0.5) == pytest.approx({win: 0.7311, loss: 0.2689}, abs=1e-4)
    three = trust({win: 0.5, loss: 0.25, on: 0.25}, 0.5)
    assert three == pytest.approx({win: 0.483, loss: 0.2585, on: 0.2585}, abs=1e-4)
    assert trust({win: 1.0}, 0.5) == {win: 1.0}


def test_a_success_counts_by_how_many_predictions_claim_it():
    assert reviewed(WON, [WON, WON, WON]) == WON
    doubted = reviewed(WON, [WON, WON, LOST])
    assert (doubted.success, doubted.state) == (True, "a")
    assert doubted.reward == pytest.approx(0.7311, abs=1e-4)


@pytest.mark.parametrize(("votes", "step"), [([LOST, LOST, WON], LOST), ([CONTINUED, CONTINUED, LOST], CONTINUED)])
def test_one_that_is_claimed_less_often_than_another_verdict_is_denied(votes, step):
    assert reviewed(WON, [*votes[:2], *votes[:1], votes[2]]) == step


def test_one_that_too_few_claim_is_denied():
    assert reviewed(WON, [WON, LOST, CONTINUED], min_votes=3) in (LOST, CONTINUED)


def test_a_vote_that_cannot_be_parsed_is_none():
    assert reviewed(WON, [WON, None, None]) == WON
    assert reviewed(WON, [None, None, None]).reward == 1.0, "nobody denies it"


def test_other_steps_are_never_asked_about_again():
    assert reviewed(LOST, [WON, WON, WON]) == LOST
