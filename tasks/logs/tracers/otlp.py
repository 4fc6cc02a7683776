"""Conversation of a trace of OpenTelemetry, as OTLP in JSON: of its model call with the most messages, sent and answered.

The messages are attributes: of the GenAI conventions, of pydantic-ai, or numbered ones.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from tasks.logs.shapes.in_words import as_text
from tasks.logs.tracers.numbered_attributes import numbered_messages, without_messages

_SENT, _ANSWERED = "gen_ai.input.messages", "gen_ai.output.messages"
_SYSTEM = "gen_ai.system_instructions"
_ALL = "pydantic_ai.all_messages"


NOT_UNDERSTOOD = (KeyError, TypeError, AttributeError, ValueError)
"""Errors raised by a malformed record."""


@dataclass(slots=True)
class Trace:
    """Combined content of the spans of one trace."""

    record: dict[str, Any]
    """Conversation as `messages`, and all other attributes of the spans."""
    reason: str = ""
    """Reason if a span could not be read."""


def spans_of(export: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return an OTLP export's spans, each with the id of its trace, which may be spread over many exports.

    Raises:
        KeyError, TypeError, AttributeError: the record is not a valid export.
    """
    return [(_trace_id(span), span) for span in _spans(export)]


def trace_of(name: str, spans: Iterable[dict[str, Any]]) -> Trace:
    """Combine all spans of a trace."""
    trace = Trace({"trajectory_id": name, "messages": []})
    for span in spans:
        try:
            _add(span, trace.record)
        except NOT_UNDERSTOOD as error:
            trace.reason = f"has a span that is not understood ({type(error).__name__}: {error})"
    return trace


def _trace_id(span: dict[str, Any]) -> str:
    if not isinstance(span["traceId"], str):
        raise TypeError("a span's traceId is not text")
    return span["traceId"]


def _add(span: dict[str, Any], record: dict[str, Any]) -> None:
    attributes = {one["key"]: _value(one["value"]) for one in span.get("attributes") or []}
    messages = _said(attributes.pop(_SENT, [])) + _said(attributes.pop(_ANSWERED, []))
    messages = messages or _said(attributes.pop(_ALL, [])) or numbered_messages(attributes)
    if len(messages) > len(record["messages"]):
        record["messages"] = messages
    record |= {name: value for name, value in without_messages(attributes).items() if name != _SYSTEM}


def _spans(export: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in export.get("resourceSpans") or []:
        for scope in resource.get("scopeSpans") or []:
            yield from scope.get("spans") or []


def _value(typed: dict[str, Any]) -> Any:
    """Return the value in OTLP's `{"stringValue": ...}` and its other types."""
    kind, value = cast("tuple[str, Any]", next(iter(typed.items()), ("", None)))
    if kind == "intValue":
        return int(value)
    if kind == "arrayValue":
        return [_value(one) for one in value.get("values", [])]
    if kind == "kvlistValue":
        return {one["key"]: _value(one["value"]) for one in value.get("values", [])}
    return value


def _said(messages: Any) -> list[dict[str, Any]]:
    """Convert messages with parts to OpenAI's format."""
    listed = json.loads(messages) if isinstance(messages, str) else messages
    return [one for message in listed for one in _as_openai(message)]


def _as_openai(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    parts = message.get("parts", [])
    answers = [part for part in parts if part.get("type") == "tool_call_response"]
    for part in answers:
        yield {"role": "tool", "content": as_text(part.get("response", part.get("result")))}
    texts = [part["content"] for part in parts if part.get("type") == "text"]
    calls = [{"function": part} for part in parts if part.get("type") == "tool_call"]
    if texts or calls or not answers:
        yield {"role": message["role"], "content": "\n".join(texts), "tool_calls": calls}
