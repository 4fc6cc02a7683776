"""Messages in what a model call was sent and answered, as clients record it: requests, lists, responses, or plain text."""

from typing import Any

from tasks.logs.conventions.otel_values import messages_with_parts
from tasks.logs.shapes.in_words import Message, as_text
from tasks.logs.shapes.vercel import named_call

_SENT = ("messages", "input", "contents", "prompt", "args")
"""Names under which clients send what a model is asked."""


def sent_in(value: Any) -> list[Message]:
    """Return the messages of a request: listed, under a usual name, in a batch of one, or a text of the user.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: they are malformed.
    """
    if isinstance(value, dict):
        inner = next((value[name] for name in _SENT if value.get(name)), None)
        return [value] if inner is None and "role" in value else sent_in(inner)
    if isinstance(value, list):
        listed = value[0] if len(value) == 1 and isinstance(value[0], list) else value
        return sent_in(listed[0]) if len(listed) == 1 and isinstance(listed[0], str) else messages_with_parts(listed)
    return [{"role": "user", "content": as_text(value)}] if value else []


def answered_in(value: Any) -> list[Message]:
    """Return the messages of a response: of its first choice, candidate or generation, listed, one, or a text of the agent.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: they are malformed.
    """
    if isinstance(value, dict):
        return _of_response(value)
    if not isinstance(value, list):
        return [{"role": "assistant", "content": as_text(value)}] if value else []
    if value and all(isinstance(one, dict) and "toolName" in one for one in value):
        return [{"role": "assistant", "content": "", "tool_calls": [*map(named_call, value)]}]
    if value and isinstance(value[0], dict) and isinstance(value[0].get("message"), dict):
        return [value[0]["message"]]  # choices without the response around them
    return answered_in(value[0]) if len(value) == 1 and isinstance(value[0], list) else messages_with_parts(value)


def _of_response(response: dict[str, Any]) -> list[Message]:
    """Return the messages of a response: of its first alternative, under a usual name, or itself."""
    if response.get("choices"):
        return [response["choices"][0]["message"]]
    if response.get("candidates"):
        return [response["candidates"][0]["content"]]
    if response.get("generations"):
        return _of_generation(response["generations"][0])
    inner = next((response[name] for name in ("messages", "output", "message") if name in response), None)
    if inner is None and isinstance(response.get("content"), dict):
        inner = response["content"]  # as Gemini's agents answer
    if inner is None:
        return [response] if {"role", "type", "lc"} & response.keys() else []
    return [inner] if isinstance(inner, dict) and "role" in inner else answered_in(inner)


def _of_generation(generation: Any) -> list[Message]:
    first = generation[0] if isinstance(generation, list) else generation
    return [first["message"]] if "message" in first else answered_in(first.get("text"))
