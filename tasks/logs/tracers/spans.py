"""Spans of a platform's trace, joined to the agent's conversation."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tasks.logs.conventions.requests import answered_in, sent_in
from tasks.logs.shapes.in_words import Message
from tasks.logs.tracers.calls import Call, conversation_of_calls
from tasks.logs.tracers.span_tree import SpanTree, span_of
from tasks.logs.tracers.tool_spans import ToolRun, with_tool_runs


@dataclass(frozen=True, slots=True)
class TracedSpan:
    """Span of a trace: a call of a model, a run of a tool, or what encloses such spans."""

    id: Any
    parent: Any
    kind: Any
    """Its subject, in the platform's word for it; see `Span`."""
    began: int
    """Nanoseconds; 0 if it is not known."""
    sent: list[Message] = field(default_factory=list)
    """Messages that a model was sent."""
    answered: list[Message] = field(default_factory=list)
    """Messages that it answered."""
    run: ToolRun | None = None


def exchanged(given: Any, returned: Any, *, is_call: bool) -> tuple[list[Message], list[Message]]:
    """Return the messages that a span sent a model and was answered; none unless it is a call of one.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: they are malformed.
    """
    return (sent_in(given), answered_in(returned)) if is_call else ([], [])


def conversation_of_spans(spans: Iterable[TracedSpan]) -> tuple[list[Message], tuple[str, ...]]:
    """Return the messages of the agent's conversation, with what only tools know of it, and remarks.

    Raises:
        ValueError: no span is a call of a model with messages.
    """
    ordered = sorted(spans, key=lambda one: one.began)
    tree = SpanTree(span_of(one.id, one.parent, one.kind) for one in ordered)
    messages, joined = conversation_of_calls(
        Call(one.sent, one.answered, one.began, within=tree.within(str(one.id or ""))) for one in ordered
    )
    if not messages:
        raise ValueError("no span of the trace is a call of a model with messages")
    messages, acted = with_tool_runs(messages, [one.run for one in ordered if one.run])
    return messages, (*joined, *acted)
