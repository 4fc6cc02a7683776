"""Sessions of Gemini CLI: a record with messages of the user and of Gemini, whose calls hold their results."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.message_content import text_in
from tasks.logs.shapes.in_words import Message, as_text, call_of

TITLE, SPANS_FILES = "Sessions of Gemini CLI", False
_AGENT = "gemini"


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a session."""
    messages = record.get("messages")
    return "sessionId" in record and isinstance(messages, list) and all(map(_has_type, messages))


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the session, which is an episode."""
    return [(WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation; what the program says of itself, as errors, is no part of it."""
    (session,) = parts
    messages = [one for message in session["messages"] for one in _messages(message)]
    yield Recorded(messages, {"trajectory_id": session["sessionId"], "source": "Gemini CLI"})


def _has_type(message: Any) -> bool:
    return isinstance(message, dict) and "type" in message and "role" not in message


def _messages(message: dict[str, Any]) -> Iterator[Message]:
    """Yield a message, and the results of its calls."""
    if message["type"] == "user":
        yield {"role": "user", "content": text_in(message)}
    if message["type"] != _AGENT:
        return
    calls = message.get("toolCalls") or []
    thoughts = [f"{one.get('subject', '')}: {one.get('description', '')}" for one in message.get("thoughts") or []]
    asked = [call_of(one["name"], one.get("args")) for one in calls]
    yield {"role": "assistant", "content": text_in(message), "tool_calls": asked, "reasoning": "\n".join(thoughts)}
    yield from ({"role": "tool", "content": "\n".join(map(_result, one.get("result") or []))} for one in calls)


def _result(part: dict[str, Any]) -> str:
    """Return what a tool said: the only field of its response, or all of it."""
    response = part.get("functionResponse", {}).get("response", part)
    values = list(response.values()) if isinstance(response, dict) else []
    return as_text(values[0] if len(values) == 1 else response)
