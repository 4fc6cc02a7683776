"""Messages of all kinds in OpenAI's shape: role, content, tool_calls and reasoning.

Known are content blocks of Anthropic, items of OpenAI's Responses, contents of Gemini, and ShareGPT's functions.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Message = dict[str, Any]


def in_openai_shape(messages: Iterable[Message]) -> list[Message]:
    """Return messages as OpenAI writes them; one message may become several, in their order."""
    return [one for message in messages for one in _shaped(message)]


def _shaped(message: Message) -> Iterator[Message]:
    kind = message.get("type")
    if kind == "function_call":
        yield _asked(message)
    elif kind == "function_call_output":
        yield {"role": "tool", "content": as_text(message.get("output"))}
    elif kind == "reasoning" and "role" not in message:
        yield {
            "role": "assistant",
            "content": "",
            "reasoning": as_text(message.get("summary") or message.get("content")),
        }
    elif message.get("from") == "function_call":
        yield _asked(_read(message["value"]))
    elif isinstance(parts := message.get("parts"), list) and not any("type" in one for one in parts):
        yield from _of_gemini(message.get("role", "user"), parts)
    elif isinstance(blocks := message.get("content"), list) and any(_is_tool(one) for one in blocks):
        yield from _of_anthropic(message, blocks)
    else:
        yield message


def _asked(call: Mapping[str, Any], role: str = "assistant") -> Message:
    return {
        "role": role,
        "content": "",
        "tool_calls": [{"function": {"name": call["name"], "arguments": call["arguments"]}}],
    }


def _read(text: str) -> dict[str, Any]:
    """Return a call that is written as JSON; text that is none is a call without a name."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return (
        value if isinstance(value, dict) and {"name", "arguments"} <= value.keys() else {"name": "", "arguments": text}
    )


def _of_gemini(role: str, parts: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in parts:
        if answer := part.get("functionResponse"):
            yield {"role": "tool", "content": as_text(answer.get("response"))}
        elif call := part.get("functionCall"):
            calls.append({"function": {"name": call["name"], "arguments": call.get("args") or {}}})
        elif "text" in part:
            texts.append(part["text"])
    if texts or calls:
        yield {"role": role, "content": "\n".join(texts), "tool_calls": calls}


def _is_tool(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result")


def _of_anthropic(message: Message, blocks: Iterable[Any]) -> Iterator[Message]:
    """Yield the results of tools one by one, then everything else that the message says."""
    said: list[Any] = []
    calls: list[dict[str, Any]] = []
    for block in blocks:
        if not _is_tool(block):
            said.append(block)
        elif block["type"] == "tool_use":
            calls.append({"function": {"name": block["name"], "arguments": block.get("input") or {}}})
        else:
            yield {"role": "tool", "content": as_text(block.get("content"))}
    if said or calls:
        yield {**message, "content": said, "tool_calls": calls}


def as_text(value: Any) -> str:
    """Return a value in words: text as it is, blocks of text one after the other, everything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value and all(isinstance(one, dict) and "text" in one for one in value):
        return "\n".join(str(one["text"]) for one in value)
    return json.dumps(value, ensure_ascii=False)
