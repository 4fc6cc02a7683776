"""Messages of Vercel's AI SDK: calls of tools and their results are parts of a content."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.shapes.in_words import Message, as_text, call_of

_CALL, _RESULT = "tool-call", "tool-result"


def shaped(message: Message) -> list[Message] | None:
    """Return results of tools one by one, then everything else that the message says; None if it has no such part."""
    parts = message.get("content")
    if not (isinstance(parts, list) and any(_kind(part) in (_CALL, _RESULT) for part in parts)):
        return None
    return list(_split(message, parts))


def named_call(part: dict[str, Any]) -> dict[str, Any]:
    """Return a call in OpenAI's shape; its arguments have another name in older versions."""
    return call_of(part["toolName"], part.get("input", part.get("args")))


def _split(message: Message, parts: list[Any]) -> Iterator[Message]:
    yield from ({"role": "tool", "content": as_text(_result(part))} for part in parts if _kind(part) == _RESULT)
    calls = [named_call(part) for part in parts if _kind(part) == _CALL]
    said = [part for part in parts if _kind(part) not in (_CALL, _RESULT)]
    if said or calls:
        yield {**message, "content": said, "tool_calls": calls}


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else None


def _result(part: dict[str, Any]) -> Any:
    """Return what a tool returned; newer versions wrap it with its type."""
    output = part.get("output", part.get("result"))
    return output["value"] if isinstance(output, dict) and output.keys() == {"type", "value"} else output
