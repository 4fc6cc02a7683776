"""Messages whose fields are attributes of a span with numbered names: OpenInference's, and OpenLLMetry's (Traceloop).

Tables of Phoenix have lists of messages in place of the numbers, and its spans have records in place of the dots.

Example:
    llm.input_messages.0.message.content = "Reserve the book."
    gen_ai.completion.0.tool_calls.0.name = "reserve"
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.logs.shapes.in_words import Message

NAMES = ("llm.input_messages.", "llm.output_messages.", "gen_ai.prompt.", "gen_ai.completion.")
"""Beginnings of the names of attributes: of messages that were sent, and of those that were answered."""
_ARGUMENTS = ".arguments"
"""End of the name of a field whose record is a value."""
_WRAPPERS = ("message", "tool_call", "message_content")
"""Fields in which OpenInference puts what a number stands for."""


def sent(attributes: Mapping[str, Any]) -> list[Message]:
    """Return the messages of a span in OpenAI's shape, those sent before those answered; empty if it has none.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: they are malformed.
    """
    own = {name: value for name, value in attributes.items() if f"{name}.".startswith(NAMES)}
    numbered = dict(one for name, value in own.items() for one in _numbered(name, value))
    return [_message(one) for name in NAMES for one in _in_order(_tree(numbered, name))]


def answered(_attributes: Mapping[str, Any]) -> list[Message]:
    """Return nothing: answers are among what is sent."""
    return []


def _numbered(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield an attribute; records and lists of them field by field, without the fields that a table only padded."""
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        fields = [(f"{number}.{key}", inner) for number, one in enumerate(value) for key, inner in one.items()]
    elif isinstance(value, dict) and not name.endswith(_ARGUMENTS):
        fields = list(value.items())
    else:
        yield name, value
        return
    for key, inner in fields:
        yield from _numbered(f"{name}.{key}", inner) if inner is not None else ()


def _tree(attributes: Mapping[str, Any], beginning: str) -> dict[str, Any]:
    """Return the attributes whose names begin so, nested by the parts of the rest of their names."""
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(beginning):
            *above, last = name.removeprefix(beginning).split(".")
            inner = tree
            for part in above:
                inner = inner.setdefault(part, {})
            inner[last] = value
    return tree


def _in_order(numbered: Mapping[str, Any]) -> list[Any]:
    """Return values by number, without their wrapper."""
    values = [numbered[name] for name in sorted(filter(str.isdigit, numbered), key=int)]
    return [next((one[name] for name in _WRAPPERS if name in one), one) for one in values]


def _message(fields: Mapping[str, Any]) -> Message:
    parts = [{"type": "text", **one} for one in _in_order(fields.get("contents", {}))]
    calls = [one if "function" in one else {"function": one} for one in _in_order(fields.get("tool_calls", {}))]
    return {"role": fields["role"], "content": parts or fields.get("content", ""), "tool_calls": calls}
