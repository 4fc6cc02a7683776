"""Messages of LangChain: of `messages_to_dict`, of `dumpd`, and with their type in place of a role."""

from typing import Any

from tasks.logs.shapes.in_words import Message, as_text, call_of

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}


def shaped(message: Message) -> list[Message] | None:
    """Return a message with its role; None if it is not LangChain's."""
    kind, fields = _kind_and_fields(message)
    if kind not in _ROLES or not isinstance(fields, dict):
        return None
    calls = [call_of(one["name"], one.get("args")) for one in fields.get("tool_calls") or []] or _older_calls(fields)
    content = fields.get("content")
    said = [one for one in content if not _is_call(one)] if isinstance(content, list) else as_text(content)
    return [{"role": _ROLES[kind], "content": said, "tool_calls": calls}]


def _is_call(part: Any) -> bool:
    """Return whether a part of a content repeats a call of a tool."""
    return isinstance(part, dict) and part.get("type") in ("tool_use", "function_call", "tool_call")


def _older_calls(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return calls that are only kept as the model's provider wrote them."""
    beside = fields.get("additional_kwargs") or {}
    return beside.get("tool_calls") or [{"function": one} for one in [beside.get("function_call")] if one]


def _kind_and_fields(message: Message) -> tuple[str, Any]:
    """Return the type of a message, as `ai`, and the record with its content."""
    if message.get("lc") and isinstance(path := message.get("id"), list) and path:
        return str(path[-1]).removesuffix("Chunk").removesuffix("Message").lower(), message.get("kwargs")
    if "role" in message or "from" in message:
        return "", None
    kind = str(message.get("type", "")).removesuffix("Chunk").removesuffix("Message").lower()
    return kind, message.get("data", message if "content" in message else None)
