"""Requests to a model and its responses, as clients and proxies log them: OpenAI's, Gemini's, Anthropic's."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment
from tasks.logs.tracers.requests import answered_in, sent_in

TITLE, SPANS_FILES = "Requests and responses", True

_SENT = ("messages", "input", "contents")
_ANSWERED = ("choices", "candidates", "output", "content")
_TRACES = ("trace_id", "session_id", "conversation_id")
"""Names of what several requests belong to."""
_BEGAN = ("start_time", "startTime", "timestamp", "created_at")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record has a request, or what it sent, and a response."""
    return any(name in _request(record) for name in _SENT) and any(name in _response(record) for name in _ANSWERED)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the exchange as a part of what it belongs to; one that names nothing is an episode."""
    return [(str(next((record[name] for name in _TRACES if record.get(name)), WHOLE)), record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation of the exchanges; the last one that has a field gives its value.

    Raises:
        ValueError: they hold no messages.
    """
    messages, remarks = conversation_of_calls(map(_call, parts))
    if not messages:
        raise ValueError("no request or response holds messages")
    fields = {name: value for part in parts for name, value in part.items() if name not in ("request", "response")}
    yield Recorded(messages, {name: value for name, value in fields.items() if name not in _SENT}, remarks)


def _request(record: dict[str, Any]) -> dict[str, Any]:
    return _body(record.get("request", record))


def _response(record: dict[str, Any]) -> dict[str, Any]:
    return _body(record.get("response"))


def _body(value: Any) -> dict[str, Any]:
    """Return the body of what was sent over HTTP, which may stand in it; empty if there is none."""
    inner = value.get("body", value) if isinstance(value, dict) else {}
    return inner if isinstance(inner, dict) else {}


def _call(record: dict[str, Any]) -> Call:
    began = next((record[name] for name in _BEGAN if record.get(name)), 0)
    return Call(sent_in(_request(record)), answered_in(_response(record)), moment(began))
