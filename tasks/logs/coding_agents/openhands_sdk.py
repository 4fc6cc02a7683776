"""Events of OpenHands' newer SDK, each of which names its kind: those of a file, or of a record's history, are an episode."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message, as_text, call_of

TITLE, SPANS_FILES = "Events of OpenHands' SDK", False


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is an event, or has a history of them."""
    history = record.get("history")
    return _is_event(record) or (isinstance(history, list) and bool(history) and all(map(_is_event, history)))


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the event as a part of its file, or the record with its history, which is an episode."""
    return [("events", record) if _is_event(record) else (WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation; events that are neither messages, actions nor what followed from them are no part of it."""
    record = {} if _is_event(parts[0]) else parts[0]
    messages = [message for event in record.get("history", parts) if (message := _message(event))]
    report = (record.get("test_result") or {}).get("report") or {}
    fields = {name: value for name, value in {**record, **report}.items() if name != "history"}
    yield Recorded(messages, {"source": "OpenHands", **fields})


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and "source" in value and str(value.get("kind", "")).endswith("Event")


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
