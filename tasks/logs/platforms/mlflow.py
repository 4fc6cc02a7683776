"""Traces of MLflow in JSON."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import decoded
from tasks.logs.tracers.calls import moment
from tasks.logs.tracers.spans import TracedSpan, conversation_of_spans, exchanged
from tasks.logs.tracers.tool_spans import ToolRun

TITLE, SPANS_FILES = "Traces of MLflow", False
_IN_A_TABLE = {"trace_id", "spans", "trace_metadata"}
_CALLS = ("CHAT_MODEL", "LLM")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a trace of MLflow, or a row of a table of traces."""
    is_trace = (
        isinstance(record.get("info"), dict) and isinstance(record.get("data"), dict) and "spans" in record["data"]
    )
    return is_trace or (record.keys() >= _IN_A_TABLE and isinstance(record["spans"], list))


def parts_of(trace: dict[str, Any]) -> list[Part]:
    """Return the trace, which is an episode."""
    return [(WHOLE, trace if "info" in trace else {"info": trace, "data": {"spans": trace["spans"]}})]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation, with the trace's tags, metadata and feedback; expectations are no verdicts.

    Raises:
        ValueError: no span is a model call.
    """
    (trace,) = parts
    info = trace["info"]
    messages, remarks = conversation_of_spans(map(_span, trace["data"]["spans"]))
    judged = {
        one["assessment_name"]: one["feedback"].get("value")
        for one in info.get("assessments") or []
        if "feedback" in one
    }
    named = {"trajectory_id": info.get("trace_id", info.get("request_id", ""))}
    about = {"tags": info.get("tags", {}), "metadata": info.get("trace_metadata", {})}
    yield Recorded(messages, {**named, **about, **judged}, remarks)


def _span(span: dict[str, Any]) -> TracedSpan:
    """Return a span, of which MLflow stores the attributes as JSON."""
    attributes = {name: decoded(value) for name, value in span["attributes"].items()}
    kind = str(attributes.get("mlflow.spanType", ""))
    given, returned = attributes.get("mlflow.spanInputs"), attributes.get("mlflow.spanOutputs")
    sent, answered = exchanged(given, returned, is_call=kind in _CALLS)
    run = ToolRun(str(span.get("name", "")), "", given, returned) if kind == "TOOL" else None
    id = span.get("span_id") or (span.get("context") or {}).get("span_id")
    parent = span.get("parent_id", span.get("parent_span_id"))
    return TracedSpan(id, parent, kind, moment(span.get("start_time_unix_nano")), sent, answered, run)
