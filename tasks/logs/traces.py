"""Find conversations in traces: OpenTelemetry's GenAI spans as OTLP in JSON, and MLflow's traces in JSON.

The conversation of a trace is its model call with the most messages, those sent and those answered.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

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
    messages = messages or _said(attributes.pop(_ALL, []))
    if len(messages) > len(record["messages"]):
        record["messages"] = messages
    record |= {name: value for name, value in attributes.items() if name != _SYSTEM}


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
        yield {"role": "tool", "content": _text(part.get("response", part.get("result")))}
    texts = [part["content"] for part in parts if part.get("type") == "text"]
    calls = [{"function": part} for part in parts if part.get("type") == "tool_call"]
    if texts or calls or not answers:
        yield {"role": message["role"], "content": "\n".join(texts), "tool_calls": calls}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def conversation_in_trace(trace: dict[str, Any]) -> dict[str, Any]:
    """Return the conversation of an MLflow trace, with its tags, metadata and assessments.

    Raises:
        ValueError: no span is a model call.
    """
    info = trace["info"]
    found = [_called(span["attributes"]) for span in trace["data"]["spans"]]
    messages = max(found, key=len, default=[])
    if not messages:
        raise ValueError("no span of the trace is a call of a model")
    judged = {one["assessment_name"]: _judgement(one) for one in info.get("assessments", [])}
    said = {"trajectory_id": info.get("trace_id", info.get("request_id", "")), "messages": messages}
    return {**said, "tags": info.get("tags", {}), "metadata": info.get("trace_metadata", {}), **judged}


def _judgement(assessment: dict[str, Any]) -> Any:
    kinds = (assessment.get(kind, {}) for kind in ("feedback", "expectation"))
    return next((kind["value"] for kind in kinds if "value" in kind), None)


def _called(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a span if it is a model call; MLflow stores its attributes as JSON."""
    values = {name: json.loads(value) if isinstance(value, str) else value for name, value in attributes.items()}
    if values.get("mlflow.spanType") not in ("CHAT_MODEL", "LLM"):
        return []
    sent, answered = values.get("mlflow.spanInputs") or {}, values.get("mlflow.spanOutputs") or {}
    return [*sent.get("messages", []), *_answers(answered)]


def _answers(answered: Any) -> list[dict[str, Any]]:
    if not isinstance(answered, dict):
        return [{"role": "assistant", "content": _text(answered)}] if answered else []
    if "choices" in answered:
        return [answered["choices"][0]["message"]]
    return [answered] if "role" in answered else answered.get("messages", [])
