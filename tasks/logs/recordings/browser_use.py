"""Histories of browser-use: steps with the browser's state, the model's output, and results of its actions."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message, call_of

TITLE, SPANS_FILES = "Histories of browser-use", False
_THOUGHTS = ("thinking", "evaluation_previous_goal", "memory", "next_goal")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a history of browser-use."""
    history = record.get("history")
    return isinstance(history, list) and any(isinstance(one, dict) and "model_output" in one for one in history)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the history, which is an episode."""
    return [(WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation; its verdict is the last result's, and an agent that did not end was stopped."""
    (record,) = parts
    steps = record["history"]
    last = (steps[-1].get("result") or [{}])[-1]
    verdict = {"success": last.get("success")} if last.get("is_done") else {"success": False, "truncated": True}
    fields = {name: value for name, value in record.items() if name != "history"}
    yield Recorded(list(_messages(steps)), {**verdict, **fields})


def _messages(steps: list[dict[str, Any]]) -> Iterator[Message]:
    results = list[str]()
    for step in steps:
        state, output = step.get("state") or {}, step.get("model_output")
        places = [f"{name}: {state[name]}" for name in ("url", "title") if state.get(name)]
        yield {"role": "user", "content": "\n".join([*places, *results])}
        results = [str(one.get("error") or one.get("extracted_content") or "") for one in step.get("result") or []]
        if output:  # none where the model's answer could not be read
            inner = {**(output.get("current_state") or {}), **output}
            calls = [call_of(name, values) for action in output["action"] for name, values in action.items()]
            thought = "\n".join(str(inner[name]) for name in _THOUGHTS if inner.get(name))
            yield {"role": "assistant", "content": "", "tool_calls": calls, "reasoning": thought}
