"""Trajectories in ATIF, the interchange format of Harbor: steps of user and agent, with calls and their results."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message, as_text, call_of

TITLE, SPANS_FILES = "Trajectories in ATIF", False


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a trajectory in ATIF."""
    return str(record.get("schema_version", "")).startswith("ATIF") and isinstance(record.get("steps"), list)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the trajectory, which is an episode."""
    return [(WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation, with the fields of `extra` and of the final metrics."""
    (record,) = parts
    about = {**(record.get("extra") or {}), **(record.get("final_metrics") or {})}
    fields = {name: value for name, value in record.items() if name != "steps"}
    messages = [one for step in record["steps"] for one in _messages(step)]
    yield Recorded(messages, {**about, **fields, "trajectory_id": record.get("session_id")})


def _messages(step: dict[str, Any]) -> Iterator[Message]:
    role = {"agent": "assistant"}.get(step["source"], step["source"])
    calls = [call_of(one["function_name"], one.get("arguments")) for one in step.get("tool_calls") or []]
    thought = {"reasoning": step["reasoning_content"]} if step.get("reasoning_content") else {}
    yield {"role": role, "content": step.get("message") or "", "tool_calls": calls, **thought}
    for result in (step.get("observation") or {}).get("results") or []:
        yield {"role": "tool", "content": as_text(result.get("content"))}
