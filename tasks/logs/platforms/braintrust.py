"""Spans of Braintrust's logs and experiments, of which those with one root are an episode."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.shapes.in_words import decoded
from tasks.logs.tracers.calls import moment
from tasks.logs.tracers.spans import TracedSpan, conversation_of_spans, exchanged
from tasks.logs.tracers.tool_spans import ToolRun

TITLE, SPANS_FILES = "Traces of Braintrust", True
_RECORDS = ("input", "output", "scores", "metadata", "span_attributes", "span_parents", "metrics")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a span of Braintrust."""
    return {"span_id", "root_span_id", "span_attributes"} <= record.keys()


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the span, as a part of its trace; tables have JSON in text."""
    values = {name: decoded(record[name]) for name in _RECORDS if name in record}
    return [(str(record["root_span_id"]), {**record, **values})]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation, with the metadata and scores of the trace's root.

    Raises:
        ValueError: no span is a model call with messages.
    """
    messages, remarks = conversation_of_spans(map(_span, parts))
    root = next((one for one in parts if one["span_id"] == one["root_span_id"]), parts[0])
    scores = {name: value for name, value in (root.get("scores") or {}).items() if value is not None}
    yield Recorded(
        messages, {"metadata": root.get("metadata"), **({"scores": scores} if scores else {}), **scores}, remarks
    )


def _span(span: dict[str, Any]) -> TracedSpan:
    about = span.get("span_attributes") or {}
    kind, given, returned = about.get("type"), span.get("input"), span.get("output")
    sent, answered = exchanged(given, returned, is_call=kind == "llm")
    run = ToolRun(str(about.get("name", "")), "", given, returned) if kind == "tool" else None
    began = (span.get("metrics") or {}).get("start")  # seconds
    moment_of_it = int(began * 1e9) if isinstance(began, int | float) else moment(span.get("created"))
    return TracedSpan(span["span_id"], _parent(span), kind, moment_of_it, sent, answered, run)


def _parent(span: dict[str, Any]) -> Any:
    return next(iter(span.get("span_parents") or []), None)
