"""Items of OpenAI's Responses: calls of functions and of built-in tools, their outputs and reasoning are items beside messages."""

from typing import Any

from tasks.logs.shapes.in_words import Message, as_text, call_of, content_of

_CALL, _OUTPUT = "_call", "_call_output"
_ASIDE = ("mcp_list_tools", "item_reference", "compaction")
"""Items that nobody says."""
_ARGUMENTS = ("arguments", "input", "action", "queries", "code")


def shaped(message: Message) -> list[Message] | None:
    """Return an item as a message; None if it is a message, or no item that is known."""
    kind = message.get("type")
    if not isinstance(kind, str) or "role" in message:
        return None
    if kind.endswith(_OUTPUT):
        return [{"role": "tool", "content": content_of(message.get("output"))}]
    if kind.endswith(_CALL):
        call = call_of(message.get("name") or kind.removesuffix(_CALL), _arguments(message))
        said = {"role": "assistant", "content": "", "tool_calls": [call]}
        return [said, {"role": "tool", "content": as_text(message["output"])}] if message.get("output") else [said]
    if kind in _ASIDE:
        return []
    if kind == "reasoning":
        thought = as_text(message.get("summary") or message.get("content"))
        return [{"role": "assistant", "content": "", "reasoning": thought}]
    return None


def is_item(record: dict[str, Any]) -> bool:
    """Return whether a record is an item, or a message among items."""
    return (record.get("type") == "message" and "role" in record) or shaped(record) is not None


def _arguments(message: Message) -> Any:
    """Return what a tool was given, without the fields that it was not."""
    given = next((message[name] for name in _ARGUMENTS if message.get(name) is not None), None)
    return {key: one for key, one in given.items() if one is not None} if isinstance(given, dict) else given
