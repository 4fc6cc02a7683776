"""Messages of Bedrock's Converse: calls of tools and their results are blocks named by what they hold."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.shapes.in_words import Message, as_text, call_of

_CALL, _RESULT, _REASONING = "toolUse", "toolResult", "reasoningContent"
_KNOWN = {_CALL, _RESULT, _REASONING}


def shaped(message: Message) -> list[Message] | None:
    """Return results of tools one by one, then everything else that the message says; None if it has no such block."""
    blocks = message.get("content")
    if not (isinstance(blocks, list) and any(isinstance(one, dict) and _KNOWN & one.keys() for one in blocks)):
        return None
    return list(_split(message, blocks))


def _split(message: Message, blocks: list[dict[str, Any]]) -> Iterator[Message]:
    results = (block[_RESULT].get("content") or [] for block in blocks if _RESULT in block)
    yield from ({"role": "tool", "content": "\n".join(map(_text, parts))} for parts in results)
    calls = [call_of(block[_CALL]["name"], block[_CALL].get("input")) for block in blocks if _CALL in block]
    said = [_said(block) for block in blocks if not {_CALL, _RESULT} & block.keys()]
    if said or calls:
        yield {**message, "content": said, "tool_calls": calls}


def _said(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block of words or of reasoning as others write it; another one, as an image, by what it holds."""
    if _REASONING in block:
        return {"type": "thinking", "thinking": str((block[_REASONING].get("reasoningText") or {}).get("text", ""))}
    return block if "text" in block else {"type": next(iter(block), "part")}


def _text(part: dict[str, Any]) -> str:
    return as_text(part.get("text", part.get("json")))
