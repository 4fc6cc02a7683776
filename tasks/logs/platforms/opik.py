"""Traces of Opik: each with its spans, as its command exports them, or as rows of traces and of spans."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.tracers.calls import moment
from tasks.logs.tracers.spans import TracedSpan, conversation_of_spans, exchanged
from tasks.logs.tracers.tool_spans import ToolRun

TITLE, SPANS_FILES = "Traces of Opik", True
_OF_A_TRACE = {"project_id", "start_time", "input", "output", "feedback_scores"}
_OF_A_SPAN = {"trace_id", "parent_span_id", "type", "start_time", "input"}


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a trace with its spans, or a row of one of both."""
    is_export = isinstance(record.get("trace"), dict) and isinstance(record.get("spans"), list)
    return is_export or record.keys() >= _OF_A_SPAN or _is_trace(record)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the trace and its spans, or the row, as parts of the trace."""
    if "spans" in record and "trace" in record:
        return [(str(record["trace"]["id"]), one) for one in (record["trace"], *record["spans"])]
    return [(str(record["id"] if _is_trace(record) else record["trace_id"]), record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation, with the trace's metadata, and its feedback by name.

    Raises:
        ValueError: no span is a model call with messages.
    """
    trace: dict[str, Any] = next((one for one in parts if "trace_id" not in one), {})
    messages, remarks = conversation_of_spans(_span(one) for one in parts if one is not trace)
    scores = {one["name"]: one["value"] for one in trace.get("feedback_scores") or []}
    fields = {"metadata": trace.get("metadata"), **scores, **({"scores": scores} if scores else {})}
    yield Recorded(messages, fields, remarks)


def _is_trace(record: dict[str, Any]) -> bool:
    return record.keys() >= _OF_A_TRACE and "trace_id" not in record


def _span(span: dict[str, Any]) -> TracedSpan:
    kind, given, returned = span.get("type"), span.get("input"), span.get("output")
    sent, answered = exchanged(given, returned, is_call=kind == "llm")
    result = returned.get("output", returned) if isinstance(returned, dict) else returned
    run = ToolRun(str(span.get("name", "")), "", given, result) if kind == "tool" else None
    return TracedSpan(span["id"], span.get("parent_span_id"), kind, moment(span.get("start_time")), sent, answered, run)
