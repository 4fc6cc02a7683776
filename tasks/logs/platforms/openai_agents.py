"""Traces of OpenAI's Agents SDK: a line for the trace, and one for each of its spans."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.tracers.calls import moment
from tasks.logs.tracers.spans import TracedSpan, conversation_of_spans, exchanged
from tasks.logs.tracers.tool_spans import ToolRun

TITLE, SPANS_FILES = "Traces of OpenAI Agents", True
_CALLS = ("generation", "response")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a trace of OpenAI Agents, or one of its spans."""
    return record.get("object") in ("trace", "trace.span")


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the record, as a part of its trace."""
    return [(record["id"] if record["object"] == "trace" else record["trace_id"], record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation, with the trace's metadata.

    Raises:
        ValueError: no span is a model call with messages.
    """
    messages, remarks = conversation_of_spans(_span(one) for one in parts if "span_data" in one)
    metadata = next((one.get("metadata") for one in parts if one["object"] == "trace"), None) or {}
    yield Recorded(messages, {"metadata": metadata, **metadata}, remarks)


def _span(span: dict[str, Any]) -> TracedSpan:
    data, kind = span["span_data"], span["span_data"].get("type")
    given, returned = data.get("input"), data.get("output", data.get("response"))
    sent, answered = exchanged(given, returned, is_call=kind in _CALLS)
    is_tool = kind == "function" and data.get("name")
    run = ToolRun(str(data["name"]), "", given, data.get("output")) if is_tool else None
    return TracedSpan(span.get("id"), span.get("parent_id"), kind, moment(span.get("started_at")), sent, answered, run)
