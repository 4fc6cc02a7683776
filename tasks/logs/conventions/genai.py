"""OpenTelemetry's GenAI conventions: lists of messages, what was asked and answered as text, and pydantic-ai's whole runs."""

import json
from typing import Any

from tasks.logs.conventions.otel_values import message_of_event, messages_with_parts
from tasks.logs.shapes.in_words import Message, call_of

_SYSTEM, _SENT, _ANSWERED = "gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"
_ALL = "pydantic_ai.all_messages"
_EVENTS = ("all_messages_events", "events")
"""Attributes in which pydantic-ai once listed the events of an agent's run, and of a call."""
_ASKED, _SAID = "gen_ai.prompt", "gen_ai.completion"
NAMES = (_SYSTEM, _SENT, _ANSWERED, _ALL, *_EVENTS)


def sent(attributes: dict[str, Any]) -> list[Message]:
    """Return what a model was sent; of pydantic-ai all messages of a run.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: it is malformed.
    """
    system = [{"role": "system", "content": str(attributes[_SYSTEM])}] if _SYSTEM in attributes else []
    listed = messages_with_parts(attributes.get(_SENT) or [])
    if listed or attributes.get(_ANSWERED):
        return [*system, *listed] if listed else []
    return (
        messages_with_parts(attributes.get(_ALL) or []) or _of_events(attributes) or _worded(attributes, _ASKED, "user")
    )


def answered(attributes: dict[str, Any]) -> list[Message]:
    """Return what a model answered, with a call of a tool that stands beside a text; raises as `sent`."""
    if listed := messages_with_parts(attributes.get(_ANSWERED) or []):
        return listed
    said = _worded(attributes, _SAID, "assistant")
    name, arguments = (attributes.get(f"gen_ai.tool.{one}") for one in ("name", "call.arguments"))
    if not name or attributes.get("gen_ai.operation.name") != "chat":
        return said
    words = said[0]["content"] if said else ""
    return [{"role": "assistant", "content": words, "tool_calls": [call_of(name, arguments)]}]


def _of_events(attributes: dict[str, Any]) -> list[Message]:
    events = next((attributes[name] for name in _EVENTS if isinstance(attributes.get(name), str)), "[]")
    found = (message_of_event(one.get("event.name", ""), one) for one in json.loads(events))
    return [message for message in found if message]


def _worded(attributes: dict[str, Any], name: str, role: str) -> list[Message]:
    """Return an attribute that is a text from somebody, or JSON of messages."""
    value = attributes.get(name)
    if not isinstance(value, str) or not value:
        return []
    return messages_with_parts(value) if value.lstrip()[:2] in ("[{", "[]") else [{"role": role, "content": value}]
