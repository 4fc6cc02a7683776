"""Content blocks of Anthropic: calls of tools and their results are blocks of a message."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.shapes.in_words import Message, call_of, content_of

_CALL, _RESULT = "tool_use", "tool_result"
"""Ends of the types of blocks: tools that the server runs have names before them."""


def shaped(message: Message) -> list[Message] | None:
    """Return what a message says, its calls and the results of tools, in their order; None if it has no such block."""
    blocks = message.get("content")
    if not ({"role", "from"} & message.keys() and isinstance(blocks, list) and any(map(_is_tool, blocks))):
        return None
    return list(_split(message, blocks))


def _split(message: Message, blocks: list[Any]) -> Iterator[Message]:
    said, calls = list[Any](), list[dict[str, Any]]()
    for block in blocks:
        kind = _kind(block)
        if kind.endswith(_CALL):
            calls.append(call_of(block["name"], block.get("input")))
        elif kind.endswith(_RESULT):
            if calls:  # of a tool that the server ran amid the message
                yield {**message, "content": said, "tool_calls": calls}
                said, calls = [], []
            yield {"role": "tool", "content": content_of(block.get("content"))}
        else:
            said.append(block)
    if said or calls:
        yield {**message, "content": said, "tool_calls": calls}


def _is_tool(block: Any) -> bool:
    return _kind(block).endswith((_CALL, _RESULT))


def _kind(block: Any) -> str:
    return str(block.get("type", "")) if isinstance(block, dict) else ""
