"""Traces of MLflow in JSON."""

import json
from collections.abc import Iterator
from typing import Any

from tasks.logs.conventions.requests import answered_in, sent_in
from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment

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
    messages, remarks = conversation_of_calls(map(_call, trace["data"]["spans"]))
    if not messages:
        raise ValueError("no span of the trace is a call of a model")
    judged = {
        one["assessment_name"]: one["feedback"].get("value")
        for one in info.get("assessments") or []
        if "feedback" in one
    }
    named = {"trajectory_id": info.get("trace_id", info.get("request_id", ""))}
    about = {"tags": info.get("tags", {}), "metadata": info.get("trace_metadata", {})}
    yield Recorded(messages, {**named, **about, **judged}, remarks)


def _call(span: dict[str, Any]) -> Call:
    """Return the call of a span, empty if it is none; MLflow stores its attributes as JSON."""
    attributes = span["attributes"].items()
    values = {name: json.loads(value) if isinstance(value, str) else value for name, value in attributes}
    if values.get("mlflow.spanType") not in ("CHAT_MODEL", "LLM"):
        return Call([], [])
    began = moment(span.get("start_time_unix_nano"))
    return Call(sent_in(values.get("mlflow.spanInputs")), answered_in(values.get("mlflow.spanOutputs")), began)
