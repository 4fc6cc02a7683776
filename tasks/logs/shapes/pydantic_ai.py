"""Messages of pydantic-ai: requests and responses of a model, whose parts have kinds."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.shapes.in_words import Message, as_text, call_of

_ROLES = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool", "retry-prompt": "tool"}


def shaped(message: Message) -> list[Message] | None:
    """Return what was asked part by part, or what the model answered; None if it is no message of pydantic-ai."""
    parts = message.get("parts")
    if not isinstance(parts, list) or not parts or not all("part_kind" in part for part in parts):
        return None
    return list(_asked(parts) if message.get("kind") == "request" else _answers(parts))


def _asked(parts: list[dict[str, Any]]) -> Iterator[Message]:
    for part in parts:
        content = part.get("content")
        is_parts = part["part_kind"] == "user-prompt" and isinstance(content, list)
        yield {"role": _ROLES[part["part_kind"]], "content": content if is_parts else as_text(content)}


def _answers(parts: list[dict[str, Any]]) -> Iterator[Message]:
    """Yield what a model answered, and between it the results of tools that its server ran."""
    said = list[dict[str, Any]]()
    for part in parts:
        if part["part_kind"] == "builtin-tool-return":
            yield from (_answered(said), {"role": "tool", "content": as_text(part.get("content"))})
            said = []
        else:
            said.append(part)
    if said:
        yield _answered(said)


def _answered(parts: list[dict[str, Any]]) -> Message:
    texts, thoughts = (
        [part["content"] for part in parts if part["part_kind"] == kind] for kind in ("text", "thinking")
    )
    calls = [call_of(part["tool_name"], part.get("args")) for part in parts if part["part_kind"].endswith("tool-call")]
    said = {"role": "assistant", "content": "\n".join(texts), "tool_calls": calls}
    return said | ({"reasoning": "\n".join(thoughts)} if thoughts else {})
