"""Messages of all kinds in OpenAI's shape: role, content, tool_calls and reasoning."""

import json
from collections.abc import Iterable
from typing import Any

from tasks.logs.shapes import anthropic, bedrock, gemini, langchain, pydantic_ai, responses, sharegpt, tagged, vercel
from tasks.logs.shapes.in_words import Message

_KNOWN = (
    *(responses.shaped, sharegpt.shaped, tagged.shaped, pydantic_ai.shaped, gemini.shaped, anthropic.shaped),
    *(bedrock.shaped, vercel.shaped, langchain.shaped),
)
_ROLES, _WORDS = ({"role", "from"}, {"content", "value", "text", "parts", "tool_calls"})
"""Fields by which a message is recognised: one of each set."""


def in_openai_shape(messages: Iterable[Message]) -> list[Message]:
    """Return messages as OpenAI writes them, in their order; one message may become several, and most stay as they are."""
    return [one for message in messages for one in _shaped(message)]


def is_message(value: Any) -> bool:
    """Return whether a value is a message of a conversation, in any shape."""
    if not isinstance(value, dict):
        return False
    if _ROLES & value.keys() and _WORDS & value.keys():
        return True
    try:
        return any(known(value) is not None for known in _KNOWN)
    except (KeyError, TypeError, AttributeError, ValueError):
        return False


def _shaped(message: Message) -> list[Message]:
    calls = message.get("tool_calls")
    if isinstance(calls, str) or (isinstance(calls, list) and any(isinstance(one, str) for one in calls)):
        message = {**message, "tool_calls": _decoded(calls)}
    if _is_plain(message):
        return [message]
    if _is_command(message):
        return [{**message, "content": message["action"].strip(), "reasoning": message["thought"]}]
    return next((found for known in _KNOWN if (found := known(message)) is not None), [message])


def _is_command(message: Message) -> bool:
    """Return whether a message is SWE-agent's, which keeps the command and the thought beside what the model wrote."""
    parts = [message.get(name) for name in ("action", "thought")]
    return "role" in message and all(isinstance(one, str) for one in parts) and not message.get("tool_calls")


def _decoded(calls: str | list[Any]) -> list[Any]:
    """Return calls that are JSON in text, all together or each."""
    listed = json.loads(calls) if isinstance(calls, str) else calls
    return [json.loads(one) if isinstance(one, str) else one for one in listed or []]


def _is_plain(message: Message) -> bool:
    """Return whether a message is a text from somebody, as most are."""
    content = message.get("content")
    if not isinstance(content, str) or "role" not in message or "lc" in message:
        return False
    return message["role"] not in sharegpt.ROLES and tagged.TAG not in content and "action" not in message
