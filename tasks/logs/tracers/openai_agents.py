"""Traces of OpenAI's Agents SDK: a line for the trace, and one for each of its spans."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.conventions.requests import answered_in, sent_in
from tasks.logs.log_kind import Part, Recorded
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment

TITLE, SPANS_FILES = "Traces of OpenAI Agents", True


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
    messages, remarks = conversation_of_calls(
        _call(one["span_data"], moment(one.get("started_at"))) for one in parts if "span_data" in one
    )
    if not messages:
        raise ValueError("no span of the trace holds messages")
    metadata = next((one.get("metadata") for one in parts if one["object"] == "trace"), None) or {}
    yield Recorded(messages, {"metadata": metadata, **metadata}, remarks)


def _call(span: dict[str, Any], began: int) -> Call:
    if span.get("type") not in ("generation", "response"):
        return Call([], [])
    return Call(sent_in(span.get("input")), answered_in(span.get("output", span.get("response"))), began)
