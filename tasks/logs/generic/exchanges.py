"""Requests to a model and its responses, as clients and proxies log them: OpenAI's, Gemini's, Anthropic's."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from tasks.logs.conventions.requests import answered_in, sent_in
from tasks.logs.log_kind import NOT_UNDERSTOOD, Part, Recorded
from tasks.logs.message_content import AGENT_ROLES, SYSTEM_ROLES, role_of
from tasks.logs.shapes.in_words import Message
from tasks.logs.shapes.openai_shape import in_openai_shape
from tasks.logs.tracers.calls import Call, conversation_of_calls, moment, said_in

TITLE, SPANS_FILES = "Requests and responses", True

_SENT = ("messages", "input", "contents")
_ANSWERED = ("choices", "candidates", "output", "content")
_BOTH = ("request", "response", "output", *_SENT)
_TRACES = ("trace_id", "session_id", "conversation_id")
"""Names of what several requests belong to."""
_ASKED, _CHAINED = "asked ", "previous_response_id"
_BEGAN = ("start_time", "startTime", "timestamp", "created_at")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record has a request, or what it sent, and a response, or its output."""
    has_request = any(name in _request(record) for name in _SENT)
    has_output = "response" not in record and isinstance(record.get("output"), list)
    answered = _response(record) if _response(record) is not record else {}
    return has_request and (has_output or any(name in answered for name in _ANSWERED))


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the exchange as a part of what it belongs to; of one that names nothing, what was asked first is the name."""
    if (named := _trace(record)) is not None:
        return [(str(named), record)]
    return [(_CHAINED if _is_chained(record) else f"{_ASKED}{_beginning(record)}", record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversations of the exchanges; one that cannot be read is refused without the others."""
    for number, some in enumerate(_conversations(parts), 1):
        try:
            yield _conversation(some, number)
        except NOT_UNDERSTOOD as error:
            yield Recorded([], {"exchanges": some}, reason=str(error))


def _conversation(exchanges: list[dict[str, Any]], number: int) -> Recorded:
    """Return a conversation; the last exchange that has a field gives its value.

    Args:
        exchanges: Exchanges in the order of time.
        number: Number among the conversations that name nothing and begin with the same words.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: an exchange is malformed, or none holds messages.
    """
    messages, remarks = conversation_of_calls([_call(one, goes_on=_goes_on(one)) for one in exchanges])
    if not messages:
        raise ValueError("no request or response holds messages")
    first = exchanges[0]
    own = _response(first).get("id") or f"{_beginning(first)}-{number}"
    named = {} if _trace(first) is not None else {"trajectory_id": own}
    fields = {name: value for part in exchanges for name, value in part.items() if name not in _BOTH}
    return Recorded(messages, {**named, **fields}, remarks)


def _conversations(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the exchanges that belong together: all, those that name the ones before them, or that are sent all before."""
    if _trace(parts[0]) is not None:
        return [parts]
    return _chains(parts) if _is_chained(parts[0]) else _grown(parts)


def _grown(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return exchanges with those before them whose request and response they are sent again."""
    conversations: list[list[dict[str, Any]]] = []
    by_content: dict[str, list[dict[str, Any]]] = {}
    for part in sorted(parts, key=_began):
        sent, answered = _halves(part)
        last = max((place for place, one in enumerate(sent) if role_of(one) in AGENT_ROLES), default=-1)
        conversation = by_content.pop(_digest(sent[: last + 1]), None) if last >= 0 else None
        if conversation is None:
            conversations.append(conversation := [])
        conversation.append(part)
        by_content[_digest([*sent, *answered])] = conversation
    return conversations


def _halves(part: dict[str, Any]) -> tuple[list[Message], list[Message]]:
    """Return what was sent and answered in one shape; nothing if it cannot be read."""
    try:
        return in_openai_shape(sent_in(_request(part))), in_openai_shape(answered_in(_response(part)))
    except NOT_UNDERSTOOD:
        return [], []


def _chains(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
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


def _trace(record: dict[str, Any]) -> Any:
    """Return the name of what an exchange belongs to, or None; 0 is one."""
    return next((record[name] for name in _TRACES if record.get(name) not in (None, "")), None)


def _beginning(record: dict[str, Any]) -> str:
    """Return a digest of what was asked first."""
    return _digest(in_openai_shape(sent_in(_request(record)))[:1])


def _digest(messages: Sequence[Message]) -> str:
    said = "\x1f".join(said_in(one) for one in messages if role_of(one) not in SYSTEM_ROLES)
    return hashlib.sha256(said.encode(errors="replace")).hexdigest()[:16]


def _goes_on(record: dict[str, Any]) -> bool:
    """Return whether an exchange names the response before it."""
    return bool({**_request(record), **_response(record)}.get(_CHAINED))


def _is_chained(record: dict[str, Any]) -> bool:
    return _CHAINED in {**_request(record), **_response(record)}


def _request(record: dict[str, Any]) -> dict[str, Any]:
    return _body(record.get("request", _logged(record, "input")))


def _response(record: dict[str, Any]) -> dict[str, Any]:
    return _body(record.get("response", _logged(record, "output")))


def _logged(record: dict[str, Any], half: str) -> dict[str, Any]:
    """Return what was sent or answered in a log of Bedrock's invocations; the record if it is none."""
    logged = record.get(half)
    return logged.get(f"{half}BodyJson", record) if isinstance(logged, dict) else record


def _body(value: Any) -> dict[str, Any]:
    """Return the body of what was sent over HTTP, which may stand in it; empty if there is none."""
    inner = value.get("body", value) if isinstance(value, dict) else {}
    return inner if isinstance(inner, dict) else {}


def _began(record: dict[str, Any]) -> int:
    places = (record, _response(record))
    return moment(next((one[name] for one in places for name in _BEGAN if one.get(name)), 0))


def _call(record: dict[str, Any], *, goes_on: bool) -> Call:
    return Call(sent_in(_request(record)), answered_in(_response(record)), _began(record), goes_on=goes_on)
