"""Runs of LangSmith, of which those with one trace id are an episode."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.shapes.in_words import decoded
from tasks.logs.tracers.calls import moment
from tasks.logs.tracers.spans import TracedSpan, conversation_of_spans, exchanged
from tasks.logs.tracers.tool_spans import ToolRun

TITLE, SPANS_FILES = "Traces of LangSmith", True
_RECORDS = ("inputs", "outputs", "extra", "feedback_stats")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a run of LangSmith."""
    return {"run_type", "inputs", "id"} <= record.keys()


def parts_of(run: dict[str, Any]) -> list[Part]:
    """Return the run, and those within it, as parts of its trace; tables have JSON in text."""
    name = str(run.get("trace_id") or run["id"])
    return [(name, {**one, **{field: decoded(one.get(field)) for field in _RECORDS}}) for one in _with_children(run)]


def _with_children(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {name: value for name, value in run.items() if name != "child_runs"}
    for one in run.get("child_runs") or []:
        yield from _with_children(one)


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation, with the metadata and the feedback of the trace's root.

    Raises:
        ValueError: no run is a model call with messages.
    """
    messages, remarks = conversation_of_spans(map(_span, parts))
    root = next((one for one in parts if not one.get("parent_run_id")), parts[0])
    stats = root.get("feedback_stats") or {}
    feedback = {name: one["avg"] for name, one in stats.items() if one.get("avg") is not None}
    metadata = (root.get("extra") or {}).get("metadata") or {}
    yield Recorded(messages, {"metadata": metadata, **feedback}, remarks)


def _span(run: dict[str, Any]) -> TracedSpan:
    kind = run["run_type"]
    sent, answered = exchanged(run.get("inputs"), run.get("outputs"), is_call=kind == "llm")
    tool = _tool_run(run) if kind == "tool" else None
    return TracedSpan(run["id"], run.get("parent_run_id"), kind, moment(run.get("start_time")), sent, answered, tool)


def _tool_run(run: dict[str, Any]) -> ToolRun:
    """Return the execution of a tool; a result that stands alone under `output` is that."""
    result = run.get("outputs")
    if isinstance(result, dict) and result.keys() == {"output"}:
        result = result["output"]
    message = result.get("kwargs", result) if isinstance(result, dict) else {}
    return ToolRun(str(run.get("name", "")), "", run.get("inputs"), message.get("content", result))
