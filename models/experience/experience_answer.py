"""Answers of a chat model that is the experience model, read into the form of our own markers.

Accepted are the tags that `experience_prompt` asks for, and a JSON object with the same content: models that were trained to
answer in JSON do so whatever they are asked.
"""

import re
from typing import Any, Literal

from pydantic import BaseModel, field_validator

from models.text.json_answers import read_json, without_thought
from models.text.prompts import TransitionQuery, has_markers, without_markers
from schemas.state_text import GONE, apply_changes, changes_between, lines_of, state_of, text_of

_TAGGED = re.compile(
    r"\s*(?:<think>(?P<reasoning>.*?)</think>)?\s*(?:<changes>\n?(?P<changes>.*?)\n?</changes>"
    r"|<predicted_observation>\n?(?P<whole>.*)\n?</predicted_observation>)"
    r"\s*<outcome>\s*(?P<outcome>continue|success|failure)\s*</outcome>\s*",
    re.DOTALL,
)
_TASK = re.compile(r".*?<task>(?P<instruction>.*?)</task>\s*<state>\n?(?P<state>.*)\n?</state>\s*", re.DOTALL)


class _Prediction(BaseModel):
    reasoning: str = ""
    changes: dict[str, str | None]
    outcome: Literal["continue", "success", "failure"]

    @field_validator("changes", mode="before")
    @classmethod
    def _values_are_text(cls, changes: Any) -> Any:
        return _as_text(changes)


class _Variation(BaseModel):
    instruction: str
    state: dict[str, str]

    @field_validator("state", mode="before")
    @classmethod
    def _values_are_text(cls, state: Any) -> Any:
        return _as_text(state)


def _as_text(lines: Any) -> Any:
    """Return lines whose numbers and truth values are text, as a model that writes JSON means them."""
    if not isinstance(lines, dict):
        return lines
    return {name: str(value) if isinstance(value, int | float) else value for name, value in lines.items()}


def as_prediction(situation: TransitionQuery, text: str) -> str | None:
    """Return an answer with our markers: reasoning, changed lines, outcome; None if it is no valid prediction."""
    found = _read(situation.state, text)
    if found is None:
        return None
    reasoning, changes, outcome = found
    try:
        apply_changes(situation.state, changes)
    except ValueError:
        return None
    if has_markers(changes):
        return None
    return f"[think] {without_markers(reasoning)}[next]\n{changes}[outcome] {outcome}"


def _read(state: str, text: str) -> tuple[str, str, str] | None:
    """Return reasoning, changed lines and outcome of an answer."""
    if tagged := _TAGGED.fullmatch(_with_opening_tag(text)):
        whole = tagged["whole"]
        changes = tagged["changes"] if whole is None else changes_between(state, state_of(whole))
        return tagged["reasoning"] or "", changes, tagged["outcome"]
    answer = read_json(_Prediction, text)
    if answer is None:
        return None
    changes = {name: GONE if value is None else value for name, value in answer.changes.items()}
    return answer.reasoning or without_thought(text)[0], text_of(changes), answer.outcome


def _with_opening_tag(text: str) -> str:
    """Return an answer whose thought has its opening tag, which some chat templates put into the prompt."""
    return f"<think>{text}" if "</think>" in text and "<think>" not in text else text


def as_variation(text: str) -> str | None:
    """Return an answer with our markers: instruction, first state; None if it is no valid task."""
    if tagged := _TASK.fullmatch(text):
        instruction, state = tagged["instruction"].strip(), state_of(tagged["state"])
    elif answer := read_json(_Variation, text):
        instruction, state = answer.instruction, text_of(answer.state)
    else:
        return None
    try:
        lines_of(state)
    except ValueError:
        return None
    return None if has_markers(instruction + state) else f"{instruction}[state]\n{state}"
