"""The AI SDK of Vercel: messages as JSON in the spans of its calls of a model; the spans around these repeat them."""

import json
from typing import Any

from tasks.logs.shapes.in_words import Message
from tasks.logs.shapes.vercel import named_call

_SENT, _WORDS, _CALLS = "ai.prompt.messages", "ai.response.text", "ai.response.toolCalls"
NAMES = ("ai.prompt", "ai.response")


def sent(attributes: dict[str, Any]) -> list[Message]:
    """Return what a model was sent.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: it is malformed.
    """
    return json.loads(attributes.get(_SENT, "[]"))


def answered(attributes: dict[str, Any]) -> list[Message]:
    """Return what a model answered; raises as `sent`."""
    if _SENT not in attributes:
        return []
    calls = [*map(named_call, json.loads(attributes.get(_CALLS) or "[]"))]
    words = attributes.get(_WORDS) or ""
    return [{"role": "assistant", "content": words, "tool_calls": calls}] if words or calls else []
