"""Messages in what a model call was sent and answered, as clients record it: requests, lists, responses, or plain text."""

import json
from typing import Any

from tasks.logs.shapes.in_words import Message, as_text


def sent_in(value: Any) -> list[Message]:
    """Return the messages of a request: listed, under `messages` or `input`, in a batch of one, or a text of the user."""
    if isinstance(value, dict):
        inner = value.get("messages", value.get("input"))
        return [value] if inner is None and "role" in value else sent_in(inner)
    if isinstance(value, list):
        return value[0] if len(value) == 1 and isinstance(value[0], list) else value
    return [{"role": "user", "content": as_text(value)}] if value else []


def answered_in(value: Any) -> list[Message]:
    """Return the messages of a response: of its first choice or generation, listed, one, or a text of the agent."""
    if isinstance(value, list):
        return answered_in(value[0]) if len(value) == 1 and isinstance(value[0], list) else value
    if not isinstance(value, dict):
        return [{"role": "assistant", "content": as_text(value)}] if value else []
    if value.get("choices"):
        return [value["choices"][0]["message"]]
    if value.get("generations"):
        return _of_generation(value["generations"][0])
    inner = next((value[name] for name in ("messages", "output") if name in value), None)
    return answered_in(inner) if inner is not None else [value] if {"role", "type", "lc"} & value.keys() else []


def _of_generation(generation: Any) -> list[Message]:
    first = generation[0] if isinstance(generation, list) else generation
    return [first["message"]] if "message" in first else answered_in(first.get("text"))


def decoded(value: Any) -> Any:
    """Return the value that a text is JSON of; a text that is none stays as it is."""
    if not isinstance(value, str) or value[:1] not in ("[", "{", '"'):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
