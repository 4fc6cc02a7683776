"""Traces of MLflow in JSON."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.conventions.requests import answered_in, sent_in
from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import decoded
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment
from tasks.logs.tracers.span_tree import SpanTree, span_of
from tasks.logs.tracers.tool_spans import ToolRun, with_tool_runs

TITLE, SPANS_FILES = "Traces of MLflow", False
_IN_A_TABLE = {"trace_id", "spans", "trace_metadata"}


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
    spans = [{**one, "attributes": _values(one)} for one in sorted(trace["data"]["spans"], key=_began)]
    tree = SpanTree(span_of(_id(one), one.get("parent_id", one.get("parent_span_id")), _kind(one)) for one in spans)
    messages, joined = conversation_of_calls(_call(one, tree) for one in spans)
    if not messages:
        raise ValueError("no span of the trace is a call of a model")
    messages, acted = with_tool_runs(messages, [_tool_run(one) for one in spans if _kind(one) == "TOOL"])
    judged = {
        one["assessment_name"]: one["feedback"].get("value")
        for one in info.get("assessments") or []
        if "feedback" in one
    }
    named = {"trajectory_id": info.get("trace_id", info.get("request_id", ""))}
    about = {"tags": info.get("tags", {}), "metadata": info.get("trace_metadata", {})}
    yield Recorded(messages, {**named, **about, **judged}, (*joined, *acted))


def _values(span: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span, which MLflow stores as JSON."""
    return {name: decoded(value) for name, value in span["attributes"].items()}


def _id(span: dict[str, Any]) -> str:
    return str(span.get("span_id") or (span.get("context") or {}).get("span_id") or "")


def _kind(span: dict[str, Any]) -> str:
    return str(span["attributes"].get("mlflow.spanType", ""))


def _began(span: dict[str, Any]) -> int:
    return moment(span.get("start_time_unix_nano"))


def _call(span: dict[str, Any], tree: SpanTree) -> Call:
    """Return the call of a span, empty if it is none."""
    if _kind(span) not in ("CHAT_MODEL", "LLM"):
        return Call([], [])
    sent, answered = (span["attributes"].get(f"mlflow.span{one}") for one in ("Inputs", "Outputs"))
    return Call(sent_in(sent), answered_in(answered), _began(span), within=tree.within(_id(span)))


def _tool_run(span: dict[str, Any]) -> ToolRun:
    given, returned = (span["attributes"].get(f"mlflow.span{one}") for one in ("Inputs", "Outputs"))
    return ToolRun(str(span.get("name", "")), "", given, returned)
