"""Trajectories of SWE-agent: a history of messages, of which the agent's have the command that the environment ran."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message

TITLE, SPANS_FILES = "Trajectories of SWE-agent", False
_BESIDE = ("history", "trajectory")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a trajectory with its history."""
    history = record.get("history")
    return isinstance(history, list) and any(map(_has_command, history))


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the trajectory, which is an episode."""
    return [(WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation: of the agent's messages, their commands and thoughts."""
    (record,) = parts
    fields = {name: value for name, value in record.items() if name not in _BESIDE}
    yield Recorded([_command(one) if _has_command(one) else one for one in record["history"]], fields)


def _has_command(message: Any) -> bool:
    is_agent = isinstance(message, dict) and message.get("role") == "assistant"
    return (
        is_agent
        and bool(message.get("action"))
        and all(isinstance(message.get(one), str) for one in ("action", "thought"))
    )


def _command(message: Message) -> Message:
    marks = {name: message[name] for name in ("is_demo",) if name in message}
    return {"role": "assistant", "content": message["action"], "reasoning": message["thought"], **marks}
