"""Spans of OpenTelemetry: exports as OTLP in JSON, spans as its console writes them, and rows of Phoenix's tables of spans.

The messages of a model call are attributes of its span or of an event of it: of the GenAI conventions, of pydantic-ai, or
numbered ones.
"""

from collections import ChainMap
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tasks.logs.conventions import adk, genai, numbered, vercel
from tasks.logs.conventions.otel_values import CHOICE, attributes_of, message_of_event
from tasks.logs.log_kind import NOT_UNDERSTOOD, UNREAD, Part, Recorded
from tasks.logs.shapes.in_words import Message, decoded
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment
from tasks.logs.tracers.tool_spans import ToolRun, tool_run, with_tool_runs

TITLE, SPANS_FILES = "Traces of OpenTelemetry", True
Event = tuple[str, dict[str, Any]]
"""Name of an event of a span, and its attributes."""

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
_JUDGED = "gen_ai.evaluation."


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
    calls, runs, fields, remarks = list[Call](), list[ToolRun](), dict[str, Any](), list[str]()
    for span in sorted(parts, key=_began):
        try:
            attributes, events = _attributes(span), _events(span)
        except NOT_UNDERSTOOD:
            remarks.append(UNREAD)
            continue
        calls += _calls(attributes, events, _began(span), remarks)
        for given in (attributes, *(one for _, one in events)):
            fields |= _rest(given)
        if run := tool_run(attributes):
            runs.append(run)
    messages, joined = conversation_of_calls(calls)
    if not messages:
        raise ValueError("no span of it holds messages" + (" that can be read" if remarks else ""))
    messages, acted = with_tool_runs(messages, runs)
    yield Recorded(messages, fields, (*dict.fromkeys(remarks), *joined, *acted))


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


def _named(span: dict[str, Any]) -> str:
    if not isinstance(name := _trace_id(span), str):
        raise TypeError("a span's traceId is not text")
    return name


def _began(span: dict[str, Any]) -> int:
    return moment(next((span[name] for name in _BEGAN if span.get(name)), 0))


def _events(span: dict[str, Any]) -> list[Event]:
    return [(str(one.get("name", "")), attributes_of(one.get("attributes"))) for one in span.get("events") or []]


def _calls(attributes: dict[str, Any], events: list[Event], began: int, remarks: list[str]) -> Iterator[Call]:
    """Yield the calls of a model that a span tells of: by its attributes, by those of its events, and by events themselves."""
    contents = [given for name, given in events if name.startswith(_CONTENT)]
    others = [given for name, given in events if not name.startswith(_CONTENT)]
    for given in (dict(ChainMap(attributes, *contents)), *others):
        yield _call(given, began, remarks)
    if attributes.get("gen_ai.operation.name") not in _AROUND:
        sent, answered = (_read(partial(_messages_of, events, of), remarks) for of in (False, True))
        yield Call(sent, answered, began)


def _call(attributes: dict[str, Any], began: int, remarks: list[str]) -> Call:
    """Return the model call that attributes tell of, by the first convention that they follow; empty if they tell of none."""
    for one in _CONVENTIONS:
        sent, answered = (_read(partial(half, attributes), remarks) for half in (one.sent, one.answered))
        if sent or answered:
            return Call(sent, answered, began, attributes.get(_COMPACTED) is True)
    return Call([], [])


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
    """Return attributes that are no messages; an evaluation under its name."""
    rest = {name: value for name, value in attributes.items() if not f"{name}.".startswith(_MESSAGES)}
    if name := rest.get(f"{_JUDGED}name"):
        rest[name] = rest.get(f"{_JUDGED}score.value", rest.get(f"{_JUDGED}score.label"))
    return rest
