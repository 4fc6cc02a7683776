"""Calls that agents write into their text, between tags, as Hermes and Qwen do; and their results between tags."""

import json
import re
from typing import Any

from tasks.logs.message_content import AGENT_ROLES, role_of
from tasks.logs.shapes.in_words import Message, call_of

TAG = "<tool_"
_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_RESULT = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)


def shaped(message: Message) -> list[Message] | None:
    """Return a message with its calls, or the results in it; None if it has no such tags, or none that are understood."""
    name = "content" if "content" in message else "value"
    text = message.get(name)
    if not isinstance(text, str) or TAG not in text:
        return None
    if role_of(message) not in AGENT_ROLES:
        results = [{"role": "tool", "content": one} for one in _RESULT.findall(text)]
        beside = _RESULT.sub("", text).strip()
        return [*results, *([{"role": "user", "content": beside}] if beside else [])] if results else None
    try:
        calls = [_call(json.loads(one)) for one in _CALL.findall(text)]
    except (ValueError, KeyError, TypeError):
        return None
    return [{"role": "assistant", "content": _CALL.sub("", text).strip(), "tool_calls": calls}] if calls else None


def _call(written: dict[str, Any]) -> dict[str, Any]:
    return call_of(written["name"], written.get("arguments"))
