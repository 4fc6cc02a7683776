"""Spans of OpenTelemetry: exports as OTLP in JSON, spans as its console writes them, and rows of Phoenix's tables of spans.

The messages of a model call are attributes of its span or of an event of it: of the GenAI conventions, of pydantic-ai, or
numbered ones.
"""

from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from tasks.logs.conventions import adk, genai, numbered, vercel
from tasks.logs.conventions.otel_values import CHOICE, attributes_of, evaluations_in, message_of_event
from tasks.logs.log_kind import NOT_UNDERSTOOD, UNREAD, Part, Recorded
from tasks.logs.shapes.in_words import Message, decoded
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment
from tasks.logs.tracers.span_tree import Span, SpanTree, span_of
from tasks.logs.tracers.tool_spans import tool_run, with_tool_runs

TITLE, SPANS_FILES = "Traces of OpenTelemetry", True
Event = tuple[str, dict[str, Any]]
"""Name of an event of a span, and its attributes."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """Span with its content."""

    place: Span
    began: int
    attributes: dict[str, Any]
    events: list[Event]


_CONVENTIONS = (genai, numbered, vercel, adk)
_MESSAGES = tuple(name for one in _CONVENTIONS for name in one.NAMES)
_COMPACTED = "gen_ai.conversation.compacted"
_CONTENT, _WRITTEN = "gen_ai.content.", "gen_ai.event.content"
"""Beginning of the names of events with what was asked and answered; attribute with the whole message of an event."""
_AROUND = ("invoke_agent", "execute_tool")
"""Operations whose spans repeat what the spans of their calls say."""
_IN_A_TABLE = ("context.", "attributes.")
"""Beginnings of the names of columns."""
_ROW = {"trace_id", "span_id", "attributes"}
"""Columns of a table of spans, as Logfire's."""
_BEGAN = ("startTimeUnixNano", "start_time", "start_timestamp")
_IDS, _PARENTS = ("spanId", "span_id", "context.span_id"), ("parentSpanId", "parent_span_id", "parent_id")
_KINDS = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "ai.operationId")
"""Attributes that say what a span is of."""
_NO_JUDGES = ("execute_tool", "tool", "retriever", "embedding", "embeddings", "reranker", "ai.toolcall")
"""Kinds of spans whose attributes are no verdict on the episode."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is an export of spans, or a span by itself."""
    return "resourceSpans" in record or _trace_id(record) is not None


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the spans of a record, each as a part of its trace.

    Raises:
        KeyError, TypeError, AttributeError: the record is no valid export.
    """
    return [(_named(span), span) for span in (_spans(record) if "resourceSpans" in record else [record])]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation, with all other attributes of the trace's spans, and its evaluations.

    Raises:
        ValueError: no span holds messages.
    """
    read, remarks = list[_Opened](), list[str]()
    for span in sorted(parts, key=_began):
        try:
            attributes = _attributes(span)
            read.append(_Opened(_place(span, attributes), _began(span), attributes, _events(span)))
        except NOT_UNDERSTOOD:
            remarks.append(UNREAD)
    tree = SpanTree(one.place for one in read)
    calls = [call for one in read for call in _calls(one, tree.within(one.place.id), remarks)]
    messages, joined = conversation_of_calls(calls)
    if not messages:
        raise ValueError("no span of it holds messages" + (" that can be read" if remarks else ""))
    runs = [run for one in read if (run := tool_run(one.attributes))]
    messages, acted = with_tool_runs(messages, runs)
    yield Recorded(messages, _fields(read, tree), (*dict.fromkeys(remarks), *joined, *acted))


def _fields(spans: list[_Opened], tree: SpanTree) -> dict[str, Any]:
    """Return what spans say beside messages; what a span says counts before what those within it say."""
    judges = [one for one in spans if one.place.kind.lower() not in _NO_JUDGES]
    fields: dict[str, Any] = {}
    for one in sorted(judges, key=lambda one: -tree.depth(one.place.id)):
        given = (one.attributes, *(attributes for _, attributes in one.events))
        fields |= {name: value for some in given for name, value in _rest(some).items()} | evaluations_in(given)
    return fields


def _spans(export: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in export["resourceSpans"] or []:
        for scope in resource.get("scopeSpans") or []:
            yield from scope.get("spans") or []


def _trace_id(span: dict[str, Any]) -> Any:
    context = span.get("context")
    if span.keys() >= _ROW:
        return span["trace_id"]
    known = context.get("trace_id") if isinstance(context, dict) else span.get(f"{_IN_A_TABLE[0]}trace_id")
    return span.get("traceId", known)


def _attributes(span: dict[str, Any]) -> dict[str, Any]:
    """Return a span's attributes; in a table each is a column, which is empty in most rows."""
    if "attributes" in span:
        return attributes_of(decoded(span["attributes"]))
    beginning = _IN_A_TABLE[1]
    columns = {name.removeprefix(beginning): one for name, one in span.items() if name.startswith(beginning)}
    return {name: value for name, value in columns.items() if value is not None}


def _place(span: dict[str, Any], attributes: dict[str, Any]) -> Span:
    id = _first(span, _IDS) or (span.get("context") or {}).get("span_id")
    return span_of(id, _first(span, _PARENTS), _first(attributes, _KINDS))


def _first(given: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if given.get(name)), None)


def _named(span: dict[str, Any]) -> str:
    if not isinstance(name := _trace_id(span), str):
        raise TypeError("a span's traceId is not text")
    return name


def _began(span: dict[str, Any]) -> int:
    return moment(_first(span, _BEGAN) or 0)


def _events(span: dict[str, Any]) -> list[Event]:
    return [(str(one.get("name", "")), attributes_of(one.get("attributes"))) for one in span.get("events") or []]


def _calls(span: _Opened, within: tuple[str, ...], remarks: list[str]) -> Iterator[Call]:
    """Yield the calls of a model that a span holds: in its attributes, in those of its events, and as events themselves."""
    contents = [given for name, given in span.events if name.startswith(_CONTENT)]
    others = [given for name, given in span.events if not name.startswith(_CONTENT)]
    for given in (dict(ChainMap(span.attributes, *contents)), *others):
        sent, answered = _sent_and_answered(given, remarks)
        yield Call(sent, answered, span.began, given.get(_COMPACTED) is True, within)
    if span.attributes.get("gen_ai.operation.name") not in _AROUND:
        sent, answered = (_read(partial(_messages_of, span.events, of), remarks) for of in (False, True))
        yield Call(sent, answered, span.began, within=within)


def _sent_and_answered(attributes: dict[str, Any], remarks: list[str]) -> tuple[list[Message], list[Message]]:
    """Return the messages in attributes by the first convention that they follow; none if they follow none."""
    for one in _CONVENTIONS:
        sent, answered = (_read(partial(half, attributes), remarks) for half in (one.sent, one.answered))
        if sent or answered:
            return sent, answered
    return [], []


def _messages_of(events: list[Event], of_answers: bool) -> list[Message]:
    """Return the messages that are events themselves; some write them as JSON into one attribute."""
    bodies = [(name, decoded(given.get(_WRITTEN, given))) for name, given in events if (name == CHOICE) is of_answers]
    return [message for name, body in bodies if (message := message_of_event(name, body))]


def _read(read: Callable[[], list[Message]], remarks: list[str]) -> list[Message]:
    try:
        return read()
    except NOT_UNDERSTOOD:
        remarks.append(UNREAD)
        return []


def _rest(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes that are no messages."""
    return {name: value for name, value in attributes.items() if not f"{name}.".startswith(_MESSAGES)}
