"""Events of OpenHands: a file of them is an episode, or a folder with a file for each, or a record with its `history`."""

from collections.abc import Iterable, Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message, as_text, call_of

TITLE, SPANS_FILES = "Trajectories of OpenHands", False
_ASIDE = ("condensation", "condensation_request", "change_agent_state", "agent_state_changed", "null")
"""Events of the program itself, which neither the agent nor the environment says."""
_NO_ARGUMENTS = ("thought", "security_risk", "confirmation_state", "is_confirmed", "hidden", "blocking")
_ENDS = {"finish": ("final_thought", "content", "thought"), "message": ("content",)}
"""Fields with what an agent says when it finishes, or without acting."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is an event, or holds a history of events."""
    history = record.get("history")
    return _is_event(record) or (isinstance(history, list) and any(map(_is_event, _flat(history))))


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return an event as a part of its file; a record with a history is an episode."""
    return [("events" if _is_event(record) else WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation, with the fields and the test report of its record."""
    record = {} if _is_event(parts[0]) else parts[0]
    report = record.get("report") or (record.get("test_result") or {}).get("report") or {}
    named = {"trajectory_id": record.get("instance_id")}
    fields = {name: value for name, value in {**record, **report}.items() if name != "history"}
    events = _flat(record["history"]) if record else _in_order(parts)
    said = [
        event
        for event in events
        if _is_event(event) and not {event.get("action"), event.get("observation")} & {*_ASIDE}
    ]
    yield Recorded([one for event in said for one in _messages(event)], {**named, **fields})


def _is_event(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and record.get("source") in ("user", "agent", "environment")
        and (isinstance(record.get("action"), str) or isinstance(record.get("observation"), str))
    )


def _in_order(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return events by number, if each has its own: of files with one event each, 10 comes before 9."""
    numbers = {event["id"] for event in events if isinstance(event.get("id"), int)}
    return sorted(events, key=lambda event: event["id"]) if len(numbers) == len(events) else events


def _flat(history: list[Any]) -> Iterable[Any]:
    """Yield events; older histories have pairs of an action and its observation."""
    for one in history:
        yield from one if isinstance(one, list) else [one]


def _messages(event: dict[str, Any]) -> Iterator[Message]:
    arguments = event.get("args") or {}
    action, is_user = event.get("action"), event["source"] == "user"
    if action is None:
        yield {"role": "tool", "content": as_text(event.get("content"))}
    elif is_user or action in ("system", "recall"):
        yield {"role": "user" if is_user and action == "message" else "system", "content": arguments.get("content", "")}
    elif action in _ENDS:
        words = next((arguments[name] for name in _ENDS[action] if arguments.get(name)), "")
        yield {"role": "assistant", "content": words, "tool_calls": [] if words else [call_of(action, None)]}
    elif action == "think":  # a tool of its own, which answers
        yield {
            "role": "assistant",
            "content": "",
            "tool_calls": [call_of(action, {"thought": arguments.get("thought")})],
        }
    else:
        yield {"role": "assistant", "content": arguments.get("thought") or "", "tool_calls": [_call(action, arguments)]}


def _call(action: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if action == "call_tool_mcp":
        return call_of(arguments["name"], arguments.get("arguments"))
    return call_of(action, {name: one for name, one in arguments.items() if name not in _NO_ARGUMENTS})
