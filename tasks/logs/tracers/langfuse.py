"""Traces of Langfuse with their observations, as its API returns them and as its pages download them."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment
from tasks.logs.tracers.requests import answered_in, decoded, sent_in
from tasks.logs.tracers.tool_spans import ToolRun, with_tool_runs

TITLE, SPANS_FILES = "Traces of Langfuse", False


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a trace of Langfuse with its observations."""
    observations = record.get("observations")
    return isinstance(observations, list) and any(map(_is_generation, observations))


def parts_of(trace: dict[str, Any]) -> list[Part]:
    """Return the trace, which is an episode; a download has it beside its observations."""
    beside = trace.get("trace")
    return [(WHOLE, {**beside, **trace} if isinstance(beside, dict) else trace)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation, with the trace's metadata, and its scores by name.

    Raises:
        ValueError: no generation holds messages.
    """
    (trace,) = parts
    messages, remarks = conversation_of_calls(
        Call(sent_in(decoded(one.get("input"))), answered_in(decoded(one.get("output"))), moment(one.get("startTime")))
        for one in filter(_is_generation, trace["observations"])
    )
    if not messages:
        raise ValueError("no generation of the trace holds messages")
    messages, acted = with_tool_runs(messages, _tool_runs(trace["observations"]))
    scores = {one["name"]: one.get("value") for one in trace.get("scores") or []}
    metadata = decoded(trace.get("metadata")) or {}
    yield Recorded(messages, {"trajectory_id": trace.get("id", ""), "metadata": metadata, **scores}, (*remarks, *acted))


def _tool_runs(observations: list[Any]) -> list[ToolRun]:
    """Return what tools were given and returned, in the order of time."""
    tools = (one for one in observations if isinstance(one, dict) and one.get("type") == "TOOL" and one.get("name"))
    return [
        ToolRun(str(one["name"]), "", one.get("input"), one.get("output"))
        for one in sorted(tools, key=lambda one: moment(one.get("startTime")))
    ]


def _is_generation(observation: Any) -> bool:
    return isinstance(observation, dict) and observation.get("type") == "GENERATION"
