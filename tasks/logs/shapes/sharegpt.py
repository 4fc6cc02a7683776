"""Functions of ShareGPT: a message from `function_call` or `tool_call` has name and arguments as JSON, one or a list of them."""

import json
from typing import Any

from tasks.logs.shapes.in_words import Message, as_text, call_of

_CALLS, _RESULTS = ("function_call", "tool_call"), ("tool_response", "function_response")
ROLES = (*_CALLS, *_RESULTS)


def shaped(message: Message) -> list[Message] | None:
    """Return calls, or their result; None if the message is from somebody else. Text that is no JSON is a call without a name."""
    role = message.get("from", message.get("role"))
    if role not in ROLES:
        return None
    said = message.get("value", message.get("content"))
    if role in _RESULTS:
        return [{"role": "tool", "content": as_text(said)}]
    return [{"role": "assistant", "content": "", "tool_calls": [*map(_call, _listed(said))]}]


def _listed(said: Any) -> list[Any]:
    try:
        value = json.loads(said)
    except ValueError:
        return [said]
    return value if isinstance(value, list) else [value if isinstance(value, dict) else said]


def _call(known: Any) -> dict[str, Any]:
    """Return a call of a record with its name, or one without a name."""
    has_name = isinstance(known, dict) and "name" in known
    return call_of(known["name"], known.get("arguments")) if has_name else call_of("", known)
