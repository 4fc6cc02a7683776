"""Traces of Langfuse with their observations, as its API returns them and as its pages download them."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.conventions.requests import answered_in, sent_in
from tasks.logs.log_kind import NOT_UNDERSTOOD, UNREAD, WHOLE, Part, Recorded
from tasks.logs.message_content import calls_in
from tasks.logs.shapes.in_words import Message, decoded
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment
from tasks.logs.tracers.span_tree import SpanTree, span_of
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
        ValueError: no generation holds messages, or most cannot be read.
    """
    (trace,) = parts
    calls, num_unread = _calls(trace["observations"])
    if num_unread and num_unread >= len(calls):
        raise ValueError(f"{num_unread} of its {num_unread + len(calls)} generations cannot be read")
    messages, joined = conversation_of_calls(calls)
    if not messages:
        raise ValueError("no generation of the trace holds messages")
    messages, acted = with_tool_runs(messages, _tool_runs(trace["observations"]))
    scores = {one["name"]: _value_of(one) for one in sorted(trace.get("scores") or [], key=_is_of_whole_trace)}
    metadata = decoded(trace.get("metadata")) or {}
    fields = {"trajectory_id": trace.get("id", ""), "metadata": metadata, **scores}
    yield Recorded(messages, fields, (*((UNREAD,) if num_unread else ()), *joined, *acted))


def _calls(observations: list[Any]) -> tuple[list[Call], int]:
    """Return the calls of models, and the number of those that cannot be read."""
    known = [one for one in observations if isinstance(one, dict)]
    tree = SpanTree(span_of(one.get("id"), one.get("parentObservationId"), one.get("type")) for one in known)
    calls, num_unread = list[Call](), 0
    for one in filter(_is_generation, known):
        try:
            sent, answered = (
                _as_sent(sent_in(decoded(one.get("input")))),
                _as_sent(answered_in(decoded(one.get("output")))),
            )
            calls.append(Call(sent, answered, moment(one.get("startTime")), within=tree.within(str(one.get("id", "")))))
        except NOT_UNDERSTOOD:
            num_unread += 1
    return calls, num_unread


def _as_sent(messages: list[Message]) -> list[Message]:
    """Return messages as they were before Langfuse's callback for LangChain recorded them.

    It adds definitions of tools as messages of tools, keeps calls beside the content, and gives an answer the name of its
    tool as its role.
    """
    kept = [_with_calls(one) for one in messages if not _defines_tool(one)]
    names = {call["name"] for one in kept for call in calls_in(one)}
    return [{**one, "role": "tool"} if one.get("role") in names else one for one in kept]


def _defines_tool(message: Message) -> bool:
    content = message.get("content")
    return message.get("role") == "tool" and isinstance(content, dict) and content.get("type") == "function"


def _with_calls(message: Message) -> Message:
    beside = message.get("additional_kwargs")
    calls = beside.get("tool_calls") if isinstance(beside, dict) else None
    return {**message, "tool_calls": calls} if calls and not message.get("tool_calls") else message


def _tool_runs(observations: list[Any]) -> list[ToolRun]:
    """Return what tools were given and returned, in the order of time."""
    tools = (one for one in observations if isinstance(one, dict) and one.get("type") == "TOOL" and one.get("name"))
    return [
        ToolRun(str(one["name"]), "", one.get("input"), one.get("output"))
        for one in sorted(tools, key=lambda one: moment(one.get("startTime")))
    ]


def _value_of(score: dict[str, Any]) -> Any:
    """Return what a score says: its word, if it is one of categories or has no number."""
    is_word = score.get("dataType") == "CATEGORICAL" or score.get("value") is None
    return score.get("stringValue", score.get("value")) if is_word else score["value"]


def _is_of_whole_trace(score: dict[str, Any]) -> bool:
    """Return whether a score is of the trace rather than of one of its observations; those of a trace count last."""
    return not score.get("observationId")


def _is_generation(observation: Any) -> bool:
    return isinstance(observation, dict) and observation.get("type") == "GENERATION"
