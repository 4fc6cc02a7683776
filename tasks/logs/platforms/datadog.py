"""Spans of Datadog's LLM Observability, as its API exports them; those of one trace are an episode."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.shapes.in_words import Message, as_text, decoded
from tasks.logs.tracers.calls import moment
from tasks.logs.tracers.spans import TracedSpan, conversation_of_spans, exchanged
from tasks.logs.tracers.tool_spans import ToolRun

TITLE, SPANS_FILES = "Traces of Datadog", True
_ROOT = ("", None, "undefined", "0")
"""Parents of spans that have none."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a span with its attributes."""
    attributes = record.get("attributes")
    return isinstance(attributes, dict) and {"span_kind", "trace_id", "ml_app"} <= attributes.keys()


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the span, as a part of its trace."""
    return [(str(record["attributes"]["trace_id"]), record["attributes"])]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation, with the metadata and evaluations of the trace's root.

    Raises:
        ValueError: no span is a model call with messages.
    """
    messages, remarks = conversation_of_spans(map(_span, parts))
    root = next((one for one in parts if one.get("parent_id") in _ROOT), parts[0])
    judged = {name: _value_of(one) for name, one in (root.get("evaluation") or root.get("evaluations") or {}).items()}
    yield Recorded(messages, {"metadata": root.get("metadata"), **judged}, remarks)


def _value_of(evaluation: Any) -> Any:
    return evaluation.get("value") if isinstance(evaluation, dict) else evaluation


def _span(span: dict[str, Any]) -> TracedSpan:
    kind, given, returned = span.get("span_kind"), span.get("input") or {}, span.get("output") or {}
    halves = (one.get("messages", one.get("value")) for one in (given, returned))
    sent, answered = map(_messages, exchanged(*halves, is_call=kind == "llm"))
    is_tool = kind == "tool"
    run = (
        ToolRun(str(span.get("name", "")), "", decoded(given.get("value")), returned.get("value")) if is_tool else None
    )
    return TracedSpan(span["span_id"], span.get("parent_id"), kind, moment(span.get("start_ns")), sent, answered, run)


def _messages(messages: list[Message]) -> list[Message]:
    """Return messages with the results of tools as their content."""
    results = (one.get("tool_results") or [] for one in messages)
    return [
        {**one, "content": "\n".join(as_text(result.get("result")) for result in some)} if some else one
        for one, some in zip(messages, results, strict=True)
    ]
