"""Values of OpenTelemetry in JSON, and messages with parts as its GenAI conventions write them."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from tasks.logs.shapes.in_words import Message, as_text, decoded
from tasks.logs.verdicts import as_success

CHOICE = "gen_ai.choice"
"""Name of the event that is an answer of a model."""
_ROLES = ("system", "user", "assistant", "tool")
_SAID = ("text", "reasoning", "thinking", "tool_call", "tool_call_response")
"""Types of parts that are words, or calls and their results; others, as blobs, are no text."""
_JUDGED = "gen_ai.evaluation."


def value_of(typed: dict[str, Any]) -> Any:
    """Return the value in OTLP's `{"stringValue": ...}` and its other types."""
    kind, value = cast("tuple[str, Any]", next(iter(typed.items()), ("", None)))
    if kind == "intValue":
        return int(value)
    if kind == "arrayValue":
        return [value_of(one) for one in value.get("values", [])]
    if kind == "kvlistValue":
        return attributes_of(value.get("values"))
    return value


def attributes_of(given: Any) -> dict[str, Any]:
    """Return attributes by name: of OTLP's list, or already by name as in the console's JSON, maybe nested by its dots."""
    if isinstance(given, dict):
        return dict(_unnested("", given))
    return {one["key"]: value_of(one["value"]) for one in given or []}


def _unnested(above: str, given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        yield from _unnested(f"{above}{name}.", value) if isinstance(value, dict) else [(f"{above}{name}", value)]


def message_of_event(name: str, body: dict[str, Any]) -> Message | None:
    """Return the message of an event of the GenAI conventions, with the agent's role if it is an answer; None if it has none.

    Args:
        name: Name of the event, as `gen_ai.user.message` or `gen_ai.choice`.
        body: What it says.
    """
    if name == CHOICE:
        said = body.get("message", body)
        return {"role": "assistant", **(said if isinstance(said, dict) else {"content": _blocks(said)})}
    role = name.removeprefix("gen_ai.").removesuffix(".message")
    return {"role": role, **body, "content": _blocks(body.get("content"))} if role in _ROLES else None


def evaluations_in(attributes: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return evaluations of the GenAI conventions by name, and all as `scores`: of an only one the name does not matter."""
    named = dict(_evaluation(one) for one in attributes if one.get(f"{_JUDGED}name"))
    return {**named, "scores": {name: {"value": value} for name, value in named.items()}} if named else {}


def _evaluation(attributes: dict[str, Any]) -> tuple[str, Any]:
    """Return the name of an evaluation, and its label, if that is a verdict, or its score."""
    name, label, score = (attributes.get(f"{_JUDGED}{one}") for one in ("name", "score.label", "score.value"))
    return str(name), score if score is not None and as_success(label) is None else label


def _blocks(content: Any) -> Any:
    """Return a content; blocks that are written as JSON as what they are."""
    found = decoded(content)
    return found if isinstance(found, list) and all(isinstance(one, dict) for one in found) else content


def messages_with_parts(messages: Any) -> list[Message]:
    """Return messages with parts in OpenAI's shape; they are listed, or JSON of a list.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: they are malformed.
    """
    listed: Iterable[Any] = json.loads(messages) if isinstance(messages, str) else messages
    return [one for message in listed for one in _as_openai(message)]


def _as_openai(message: dict[str, Any]) -> Iterator[Message]:
    parts = message.get("parts")
    if parts is None or (parts and not any("type" in part for part in parts)):  # the latter as Gemini writes them
        yield message
        return
    answers = [part for part in parts if part.get("type") == "tool_call_response"]
    for part in answers:
        yield {"role": "tool", "content": as_text(part.get("response", part.get("result")))}
    texts = [{"type": "text", "text": part["content"]} for part in parts if part.get("type") == "text"]
    others = [{"type": part["type"]} for part in parts if part.get("type") not in _SAID]
    thoughts = [part["content"] for part in parts if part.get("type") in ("reasoning", "thinking")]
    calls = [{"function": part} for part in parts if part.get("type") == "tool_call"]
    if texts or calls or others or not answers:
        words = [*texts, *others] if others else "\n".join(one["text"] for one in texts)
        said = {"role": message["role"], "content": words, "tool_calls": calls}
        yield said | ({"reasoning": "\n".join(thoughts)} if thoughts else {})
