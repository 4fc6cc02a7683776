"""Calls of W&B's Weave: a row for each operation, of which those of one trace are an episode, or one of each example judged."""

from collections.abc import Container, Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.shapes.in_words import Message
from tasks.logs.tracers.calls import moment
from tasks.logs.tracers.span_tree import SpanTree, span_of
from tasks.logs.tracers.spans import TracedSpan, conversation_of_spans, exchanged
from tasks.logs.tracers.tool_spans import ToolRun

TITLE, SPANS_FILES = "Calls of Weave", True
_SENT = ("messages", "contents")
"""Inputs by which an operation is a call of a model."""
_EXAMPLE = "predict_and_score"
"""Operation that plays one example of an evaluation."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a call of Weave."""
    return {"op_name", "trace_id"} <= record.keys() and isinstance(record.get("inputs"), dict)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the call, as a part of its trace."""
    return [(str(record["trace_id"]), record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation in a trace, or in each example of an evaluation, with what the outermost call says.

    Raises:
        ValueError: no call is one of a model with messages.
    """
    examples = {str(one["id"]): one for one in parts if _name_of(one).endswith(_EXAMPLE)}
    for id, within in _by_example(parts, examples).items():
        messages, remarks = _conversation(within)
        yield Recorded(messages, {"trajectory_id": id, **_said_of(examples[id])}, remarks)
    if not examples:
        messages, remarks = _conversation(parts)
        root = next((one for one in parts if not one.get("parent_id")), parts[0])
        yield Recorded(messages, _said_of(root), remarks)


def _by_example(parts: list[dict[str, Any]], examples: Container[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the calls within each example of an evaluation, by the id of the call that plays it."""
    kinds = ((one, "agent" if str(one["id"]) in examples else "") for one in parts)
    tree = SpanTree(span_of(one["id"], one.get("parent_id"), kind) for one, kind in kinds)
    within: dict[str, list[dict[str, Any]]] = {}
    for one in parts:
        for id in tree.within(str(one["id"]))[-1:]:
            within.setdefault(id, []).append(one)
    return within


def _said_of(root: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a call, and its output by name; scores may be records of a scorer."""
    output = _record(root.get("output"))
    scores = _record(output.get("scores"))
    inner = {name: value for one in scores.values() if isinstance(one, dict) for name, value in one.items()}
    return {"metadata": root.get("attributes"), **inner, **scores, **output}


def _record(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _conversation(calls: list[dict[str, Any]]) -> tuple[list[Message], tuple[str, ...]]:
    """Return the messages of the agent's conversation, and remarks.

    Raises:
        ValueError: no call is one of a model with messages.
    """
    around = {one.get("parent_id") for one in calls}
    return conversation_of_spans(_span(one, is_leaf=one.get("id") not in around) for one in calls)


def _name_of(call: dict[str, Any]) -> str:
    """Return the name of a call's operation: the last part of its address."""
    return str(call["op_name"]).rpartition("/")[2].partition(":")[0]


def _span(call: dict[str, Any], *, is_leaf: bool) -> TracedSpan:
    """Return a call as a span; one that encloses no other, and asks no model, is the run of a tool."""
    given, output = call["inputs"], call.get("output")
    is_asked = any(given.get(name) for name in _SENT)
    sent, answered = exchanged(given, output, is_call=is_asked)
    arguments = {name: value for name, value in given.items() if name != "self"}
    is_tool = is_leaf and not is_asked
    run = ToolRun(_name_of(call).rpartition(".")[2], "", arguments, output) if is_tool else None
    return TracedSpan(call.get("id"), call.get("parent_id"), "", moment(call.get("started_at")), sent, answered, run)
