"""Reasoning traces from the rules of cooking: evidence, rule, verdict."""

import pytest

from infra.environments.cooking.annotator import explain
from schemas.records import AgentTask, Step, Turn

TASK = AgentTask("t", "recipe: carrot roasted sliced", "train", "f")
KITCHEN = (
    "- you: kitchen\n- kitchen: counter oven stove\n- kitchen east: pantry\n- carrot: held raw uncut\n- knife: counter"
)


def trace(action: str, state: str, *, done: bool = False, success: bool = False) -> str:
    return explain(TASK, Turn(KITCHEN, action, Step(state, float(success), done=done, success=success)))


@pytest.mark.parametrize(
    ("action", "changed", "expected"),
    [
        (
            "cook carrot with oven",
            True,
            "carrot: held raw uncut. oven here. makes roasted. recipe: carrot roasted sliced. wanted roasted. right. works.",
        ),
        (
            "cook carrot with stove",
            True,
            "carrot: held raw uncut. stove here. makes fried. recipe: carrot roasted sliced. wanted roasted. wrong. works.",
        ),
        ("go east", True, "kitchen east: pantry. works."),
        ("take knife from counter", False, "knife: counter. counter here. refused."),
        ("take spoon from counter", False, "no such thing here. counter here. refused."),
        ("sing", False, "no such action. refused."),
    ],
)
def test_a_trace_puts_the_evidence_before_the_verdict(action, changed, expected):
    assert trace(action, KITCHEN + "\n- x: y" if changed else KITCHEN) == expected


def test_the_end_is_told_in_hindsight():
    assert trace("eat carrot", KITCHEN, done=True) == "carrot: held raw uncut. in recipe. loses."
    assert trace("eat meal", KITCHEN, done=True, success=True).endswith("wins.")
