"""Traces of OpenAI's Agents SDK: a line for the trace, and one for each of its spans."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.conventions.requests import answered_in, sent_in
from tasks.logs.log_kind import Part, Recorded
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment
from tasks.logs.tracers.span_tree import SpanTree, span_of
from tasks.logs.tracers.tool_spans import ToolRun, with_tool_runs

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
    spans = sorted((one for one in parts if "span_data" in one), key=_began)
    tree = SpanTree(span_of(one.get("id"), one.get("parent_id"), one["span_data"].get("type")) for one in spans)
    messages, joined = conversation_of_calls(_call(one, tree) for one in spans)
    if not messages:
        raise ValueError("no span of the trace holds messages")
    messages, acted = with_tool_runs(messages, [run for one in spans if (run := _tool_run(one["span_data"]))])
    metadata = next((one.get("metadata") for one in parts if one["object"] == "trace"), None) or {}
    yield Recorded(messages, {"metadata": metadata, **metadata}, (*joined, *acted))


def _began(span: dict[str, Any]) -> int:
    return moment(span.get("started_at"))


def _call(span: dict[str, Any], tree: SpanTree) -> Call:
    data = span["span_data"]
    if data.get("type") not in ("generation", "response"):
        return Call([], [])
    sent, answered = sent_in(data.get("input")), answered_in(data.get("output", data.get("response")))
    return Call(sent, answered, _began(span), within=tree.within(str(span.get("id", ""))))


def _tool_run(data: dict[str, Any]) -> ToolRun | None:
    is_run = data.get("type") == "function" and data.get("name")
    return ToolRun(str(data["name"]), "", data.get("input"), data.get("output")) if is_run else None
