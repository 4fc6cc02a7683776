"""Requests to a model and its responses, as clients and proxies log them: OpenAI's, Gemini's, Anthropic's."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.conventions.requests import answered_in, sent_in
from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment

TITLE, SPANS_FILES = "Requests and responses", True

_SENT = ("messages", "input", "contents")
_ANSWERED = ("choices", "candidates", "output", "content")
_BOTH = ("request", "response", "output", *_SENT)
_TRACES = ("trace_id", "session_id", "conversation_id")
"""Names of what several requests belong to."""
_CHAINED = "previous_response_id"
_BEGAN = ("start_time", "startTime", "timestamp", "created_at")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record has a request, or what it sent, and a response, or its output."""
    has_request = any(name in _request(record) for name in _SENT)
    has_output = "response" not in record and isinstance(record.get("output"), list)
    return has_request and (has_output or any(name in _body(record.get("response")) for name in _ANSWERED))


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the exchange as a part of what it belongs to; one that names nothing is an episode."""
    named = next((record[name] for name in _TRACES if record.get(name) not in (None, "")), WHOLE)
    return [(_CHAINED if named == WHOLE and _is_chained(record) else str(named), record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversations of the exchanges; the last exchange that has a field gives its value.

    Raises:
        ValueError: they hold no messages.
    """
    for some in _chains(parts):
        messages, remarks = conversation_of_calls([_call(one, goes_on=_goes_on(one)) for one in some])
        if not messages:
            raise ValueError("no request or response holds messages")
        named = {"trajectory_id": _response(some[0]).get("id")} if _is_chained(some[0]) else {}
        fields = {name: value for part in some for name, value in part.items() if name not in _BOTH}
        yield Recorded(messages, {**named, **fields}, remarks)


def _chains(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the exchanges that belong together: all, or those whose responses name the ones before them."""
    if not _is_chained(parts[0]):
        return [parts]
    chains: list[list[dict[str, Any]]] = []
    by_response: dict[Any, list[dict[str, Any]]] = {}
    for part in sorted(parts, key=_began):
        before = {**_request(part), **_response(part)}[_CHAINED]
        chain = by_response.get(before)
        if chain is None:
            chains.append(chain := [])
        chain.append(part)
        by_response[_response(part).get("id")] = chain
    return chains


def _goes_on(record: dict[str, Any]) -> bool:
    """Return whether an exchange names the response before it."""
    return bool({**_request(record), **_response(record)}.get(_CHAINED))


def _is_chained(record: dict[str, Any]) -> bool:
    return _CHAINED in {**_request(record), **_response(record)}


def _request(record: dict[str, Any]) -> dict[str, Any]:
    return _body(record.get("request", record))


def _response(record: dict[str, Any]) -> dict[str, Any]:
    return _body(record.get("response", record))


def _body(value: Any) -> dict[str, Any]:
    """Return the body of what was sent over HTTP, which may stand in it; empty if there is none."""
    inner = value.get("body", value) if isinstance(value, dict) else {}
    return inner if isinstance(inner, dict) else {}


def _began(record: dict[str, Any]) -> int:
    places = (record, _response(record))
    return moment(next((one[name] for one in places for name in _BEGAN if one.get(name)), 0))


def _call(record: dict[str, Any], *, goes_on: bool) -> Call:
    return Call(sent_in(_request(record)), answered_in(_response(record)), _began(record), goes_on=goes_on)
