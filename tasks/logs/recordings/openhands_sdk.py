"""Events of OpenHands' newer SDK, each of which names its kind: a file of them is an episode."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.shapes.in_words import Message, as_text, call_of

TITLE, SPANS_FILES = "Events of OpenHands' SDK", False


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is an event."""
    return "source" in record and str(record.get("kind", "")).endswith("Event")


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the event as a part of its file."""
    return [("events", record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation; events that are neither messages, actions nor what followed from them are no part of it."""
    yield Recorded([message for event in parts if (message := _message(event))], {"source": "OpenHands"})


def _message(event: dict[str, Any]) -> Message | None:
    kind = event["kind"]
    if kind == "MessageEvent":
        return event["llm_message"]
    if kind == "ActionEvent":
        call = event["tool_call"]
        thought = as_text(event.get("thought") or "") or str(event.get("reasoning_content") or "")
        return {"role": "assistant", "content": thought, "tool_calls": [call_of(call["name"], call.get("arguments"))]}
    if kind == "ObservationEvent":
        return {"role": "tool", "content": as_text(event["observation"].get("content"))}
    return {"role": "tool", "content": str(event["error"])} if kind == "AgentErrorEvent" else None
