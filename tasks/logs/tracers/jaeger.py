"""Traces of Jaeger, as its pages download them: spans of OpenTelemetry whose attributes are tags."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.tracers import otel_spans

TITLE, SPANS_FILES = "Traces of Jaeger", False


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a trace of Jaeger."""
    return "traceID" in record and isinstance(record.get("spans"), list)


def parts_of(trace: dict[str, Any]) -> list[Part]:
    """Return the trace, which is an episode."""
    return [(WHOLE, trace)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation as of spans of OpenTelemetry; raises as for these."""
    (trace,) = parts
    for one in otel_spans.recorded([*map(_span, trace["spans"])]):
        yield Recorded(one.messages, {"trajectory_id": trace["traceID"], **one.fields}, one.remarks)


def _span(span: dict[str, Any]) -> dict[str, Any]:
    began = {"startTimeUnixNano": 1_000 * span["startTime"]}
    events = [{"attributes": _tagged(one.get("fields"))} for one in span.get("logs") or []]
    named = [{"name": one["attributes"].get("event", ""), **one} for one in events]
    above = [one.get("spanID") for one in span.get("references") or [] if one.get("refType", "CHILD_OF") == "CHILD_OF"]
    ids = {"traceId": span["traceID"], "spanId": span.get("spanID"), "parentSpanId": next(iter(above), None)}
    return {**ids, **began, "attributes": _tagged(span.get("tags")), "events": named}


def _tagged(tags: list[dict[str, Any]] | None) -> dict[str, Any]:
    return {one["key"]: one["value"] for one in tags or []}
