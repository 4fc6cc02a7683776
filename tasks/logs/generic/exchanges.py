"""Requests to a model and its responses, as clients and proxies log them: OpenAI's, Gemini's, Anthropic's."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from tasks.logs.conventions.requests import answered_in, sent_in
from tasks.logs.generic.exchange_fields import (
    CHAINED,
    HALVES,
    answer_of,
    began_at,
    is_chained,
    is_exchange,
    request_of,
    response_before,
    response_of,
    trace_of,
)
from tasks.logs.log_kind import NOT_UNDERSTOOD, Part, Recorded
from tasks.logs.message_content import AGENT_ROLES, SYSTEM_ROLES, role_of
from tasks.logs.shapes.in_words import Message
from tasks.logs.shapes.openai_shape import in_openai_shape
from tasks.logs.tracers.calls import Call, conversation_of_calls, said_in

TITLE, SPANS_FILES = "Requests and responses", True

_ASKED = "asked "


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record has a request, or what it sent, and a response, or its output."""
    return is_exchange(record)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the exchange as a part of what it belongs to; of one that names nothing, what was asked first is the name."""
    if (named := trace_of(record)) is not None:
        return [(str(named), record)]
    return [(CHAINED if is_chained(record) else f"{_ASKED}{_beginning(record)}", record)]


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
    messages, remarks = conversation_of_calls([_call(one, goes_on=bool(response_before(one))) for one in exchanges])
    if not messages:
        raise ValueError("no request or response holds messages")
    first = exchanges[0]
    own = response_of(first).get("id") or f"{_beginning(first)}-{number}"
    named = {} if trace_of(first) is not None else {"trajectory_id": own}
    fields = {name: value for part in exchanges for name, value in part.items() if name not in HALVES}
    return Recorded(messages, {**named, **fields}, remarks)


def _conversations(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the exchanges that belong together: all, those that name the ones before them, or that are sent all before."""
    if trace_of(parts[0]) is not None:
        return [parts]
    return _chains(parts) if is_chained(parts[0]) else _grown(parts)


def _grown(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return exchanges with those before them whose request and response they are sent again.

    After one that was not answered, another goes on from the same place.
    """
    conversations: list[list[dict[str, Any]]] = []
    by_content: dict[str, list[dict[str, Any]]] = {}
    for part in sorted(parts, key=began_at):
        sent, answered = _halves(part)
        last = max((place for place, one in enumerate(sent) if role_of(one) in AGENT_ROLES), default=-1)
        before = _digest(sent[: last + 1])
        conversation = by_content.pop(before, None) if last >= 0 else None
        if conversation is None:
            conversations.append(conversation := [])
        conversation.append(part)
        by_content[_digest([*sent, *answered]) if answered else before] = conversation
    return conversations


def _halves(part: dict[str, Any]) -> tuple[list[Message], list[Message]]:
    """Return what was sent and answered in one shape; nothing if it cannot be read."""
    try:
        return in_openai_shape(sent_in(request_of(part))), in_openai_shape(answered_in(answer_of(part)))
    except NOT_UNDERSTOOD:
        return [], []


def _chains(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    chains: list[list[dict[str, Any]]] = []
    by_response: dict[Any, list[dict[str, Any]]] = {}
    for part in sorted(parts, key=began_at):
        chain = by_response.get(response_before(part))
        if chain is None:
            chains.append(chain := [])
        chain.append(part)
        by_response[response_of(part).get("id")] = chain
    return chains


def _beginning(record: dict[str, Any]) -> str:
    """Return a digest of what was asked first."""
    return _digest(in_openai_shape(sent_in(request_of(record)))[:1])


def _digest(messages: Sequence[Message]) -> str:
    said = "\x1f".join(said_in(one) for one in messages if role_of(one) not in SYSTEM_ROLES)
    return hashlib.sha256(said.encode(errors="replace")).hexdigest()[:16]


def _call(record: dict[str, Any], *, goes_on: bool) -> Call:
    return Call(sent_in(request_of(record)), answered_in(answer_of(record)), began_at(record), goes_on=goes_on)
