"""Logs of OpenTelemetry as OTLP in JSON, whose GenAI events are the messages of model calls."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tasks.logs.conventions import genai
from tasks.logs.conventions.otel_values import CHOICE, attributes_of, evaluations_in, message_of_event, value_of
from tasks.logs.log_kind import Part, Recorded
from tasks.logs.shapes.in_words import Message
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment

TITLE, SPANS_FILES = "Logs of OpenTelemetry with GenAI events", True
_IN_A_CONSOLE = {"body", "trace_id", "severity_number"}


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is an export of logs, or a log as the console's exporter writes it."""
    return "resourceLogs" in record or record.keys() >= _IN_A_CONSOLE


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the events of an export, each as a part of its trace.

    Raises:
        KeyError, TypeError, AttributeError: the record is no valid export.
    """
    if "resourceLogs" in record:
        return [(str(one["traceId"]), one) for one in _events(record)]
    event = {"spanId": record.get("span_id", ""), "timeUnixNano": record.get("timestamp"), "plain": record["body"]}
    return [(str(record["trace_id"]), {**event, "attributes": record.get("attributes")})]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation, of which each span is a call.

    Raises:
        ValueError: no event is a message.
    """
    spans: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in parts:
        spans[event.get("spanId", "")].append(event)
    messages, remarks = conversation_of_calls(_call(some) for some in spans.values())
    if not messages:
        raise ValueError("no event of it is a message")
    yield Recorded(messages, evaluations_in(attributes_of(event.get("attributes")) for event in parts), remarks)


def _events(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in record["resourceLogs"] or []:
        for scope in resource.get("scopeLogs") or []:
            yield from scope.get("logRecords") or []


def _call(events: list[dict[str, Any]]) -> Call:
    sent, answered = list[Message](), list[Message]()
    for event in events:
        attributes = attributes_of(event.get("attributes"))
        name = event.get("eventName") or attributes.get("event.name", "")
        body = event.get("plain") or value_of(event.get("body") or {}) or {}
        if message := message_of_event(name, body):
            (answered if name == CHOICE else sent).append(message)
        sent += genai.sent(attributes)
        answered += genai.answered(attributes)
    return Call(sent, answered, moment(events[0].get("timeUnixNano")))
