"""Spans of OpenTelemetry: exports as OTLP in JSON, spans as its console writes them, and rows of Phoenix's tables of spans.

The messages of a model call are attributes of its span or of an event of it: of the GenAI conventions, of pydantic-ai, or
numbered ones.
"""

import json
from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import NOT_UNDERSTOOD, UNREAD, Part, Recorded
from tasks.logs.shapes.in_words import Message, call_of
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment
from tasks.logs.tracers.numbered_attributes import numbered_messages, without_messages
from tasks.logs.tracers.otel_values import attributes_of, message_of_event, messages_with_parts
from tasks.logs.tracers.tool_spans import ToolRun, tool_run, with_tool_runs

TITLE, SPANS_FILES = "Traces of OpenTelemetry", True

_SYSTEM, _SENT, _ANSWERED = "gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"
_ALL = "pydantic_ai.all_messages"
_EVENTS = ("all_messages_events", "events")
"""Attributes in which pydantic-ai once listed the events of an agent's run, and of a call."""
_COMPACTED = "gen_ai.conversation.compacted"
_MESSAGES = (_SYSTEM, _SENT, _ANSWERED, _ALL, *_EVENTS)
_IN_A_TABLE = ("context.", "attributes.")
"""Beginnings of the names of columns."""
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
            attributes = _attributes(span)
            events = [attributes_of(one.get("attributes")) for one in span.get("events") or []]
        except NOT_UNDERSTOOD:
            remarks.append(UNREAD)
            continue
        for given in (attributes, *events):
            calls.append(_call(given, _began(span), remarks))
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
    known = context.get("trace_id") if isinstance(context, dict) else span.get(f"{_IN_A_TABLE[0]}trace_id")
    return span.get("traceId", known)


def _attributes(span: dict[str, Any]) -> dict[str, Any]:
    """Return a span's attributes; in a table each is a column, which is empty in most rows."""
    if "attributes" in span:
        return attributes_of(span["attributes"])
    beginning = _IN_A_TABLE[1]
    columns = {name.removeprefix(beginning): one for name, one in span.items() if name.startswith(beginning)}
    return {name: value for name, value in columns.items() if value is not None}


def _named(span: dict[str, Any]) -> str:
    if not isinstance(name := _trace_id(span), str):
        raise TypeError("a span's traceId is not text")
    return name


def _began(span: dict[str, Any]) -> int:
    return moment(span.get("startTimeUnixNano", span.get("start_time")))


def _call(attributes: dict[str, Any], began: int, remarks: list[str]) -> Call:
    """Return the model call that attributes tell of; empty if they tell of none."""
    sent, answered = _read(attributes.get(_SENT), remarks), _read(attributes.get(_ANSWERED), remarks)
    if sent or answered:
        system = [{"role": "system", "content": str(attributes[_SYSTEM])}] if _SYSTEM in attributes else []
        return Call([*system, *sent], answered, began, attributes.get(_COMPACTED) is True)
    if (
        whole := _read(attributes.get(_ALL), remarks)
        or _of_events(attributes, remarks)
        or numbered_messages(attributes)
    ):
        return Call(whole, [], began)
    return Call(*_in_plain_text(attributes), began)


def _in_plain_text(attributes: dict[str, Any]) -> tuple[list[Message], list[Message]]:
    """Return what a model was asked and answered, where a span has each as a text, and a call of a tool beside it."""
    asked, said = (attributes.get(f"gen_ai.{name}") for name in ("prompt", "completion"))
    sent = [{"role": "user", "content": asked}] if isinstance(asked, str) and asked else []
    name, arguments = (attributes.get(f"gen_ai.tool.{one}") for one in ("name", "call.arguments"))
    calls = [call_of(name, arguments)] if name and attributes.get("gen_ai.operation.name") == "chat" else []
    words = said if isinstance(said, str) else ""
    return sent, [{"role": "assistant", "content": words, "tool_calls": calls}] if calls or words else []


def _read(messages: Any, remarks: list[str]) -> list[Message]:
    try:
        return messages_with_parts(messages or [])
    except NOT_UNDERSTOOD:
        remarks.append(UNREAD)
        return []


def _of_events(attributes: dict[str, Any], remarks: list[str]) -> list[Message]:
    """Return the messages of listed events."""
    events = next((attributes[name] for name in _EVENTS if isinstance(attributes.get(name), str)), "[]")
    try:
        found = (message_of_event(one.get("event.name", ""), one) for one in json.loads(events))
        return [message for message in found if message]
    except NOT_UNDERSTOOD:
        remarks.append(UNREAD)
        return []


def _rest(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes that are no messages; an evaluation under its name."""
    rest = {name: value for name, value in without_messages(attributes).items() if name not in _MESSAGES}
    if name := rest.get(f"{_JUDGED}name"):
        rest[name] = rest.get(f"{_JUDGED}score.value", rest.get(f"{_JUDGED}score.label"))
    return rest
