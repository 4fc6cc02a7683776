"""Content blocks of Anthropic: calls of tools and their results are blocks of a message."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.shapes.in_words import Message, as_text, call_of


def shaped(message: Message) -> list[Message] | None:
    """Return the results of tools one by one, then everything else that the message says; None if it has no such block."""
    blocks = message.get("content")
    if not (isinstance(blocks, list) and any(map(_is_tool, blocks))):
        return None
    return list(_split(message, blocks))


def _split(message: Message, blocks: list[Any]) -> Iterator[Message]:
    said, calls = list[Any](), list[dict[str, Any]]()
    for block in blocks:
        if not _is_tool(block):
            said.append(block)
        elif block["type"] == "tool_use":
            calls.append(call_of(block["name"], block.get("input")))
        else:
            yield {"role": "tool", "content": as_text(block.get("content"))}
    if said or calls:
        yield {**message, "content": said, "tool_calls": calls}


def _is_tool(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result")
