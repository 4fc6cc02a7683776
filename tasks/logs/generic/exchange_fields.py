"""Fields of one exchange with a model: its request, its response, and what it belongs to."""

from collections.abc import Mapping
from typing import Any

from tasks.logs.message_content import AGENT_ROLES, role_of
from tasks.logs.tracers.calls import moment

_SENT = ("messages", "input", "contents")
_ANSWERED = ("choices", "candidates", "output", "content")
_REQUESTS = ("request", "request_body", "responses_create_params")
_RESPONSES = ("response", "response_body")
"""Fields of the two halves, of proxies as Helicone and LiteLLM, and of NeMo Gym."""
HALVES = (*_REQUESTS, *_RESPONSES, "output", *_SENT)
_TRACES = ("trace_id", "session_id", "conversation_id")
"""Names of what several requests belong to."""
_BEGAN = ("start_time", "startTime", "timestamp", "created_at", "request_created_at")
CHAINED = "previous_response_id"


def is_exchange(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a request, or what it sent, and a response, or its output; one that failed has none."""
    if not any(name in request_of(record) for name in _SENT):
        return False
    answer = answer_of(record)
    if answer and response_of(record) is not record and not isinstance(answer, str):
        return any(name in answer for name in _ANSWERED)
    if isinstance(answer, list):
        return True
    is_message = isinstance(answer, str) or (isinstance(answer, dict) and "role" in answer)
    return (is_message or any(name in record for name in _RESPONSES)) and _is_unanswered(record)


def request_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was sent; the record itself where it has no request of its own."""
    return _body(next((record[name] for name in _REQUESTS if name in record), _logged(record, "input")))


def response_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was answered; the record itself where it has no response of its own, empty if that failed."""
    return _body(next((record[name] for name in _RESPONSES if name in record), _logged(record, "output")))


def answer_of(record: Mapping[str, Any]) -> Any:
    """Return what was answered: the response, a record or words, or the output beside what was sent."""
    words = next((record[name] for name in _RESPONSES if isinstance(record.get(name), str)), "")
    response = response_of(record)
    return words or (record.get("output") if response is record else response)


def trace_of(record: Mapping[str, Any]) -> Any:
    """Return the name of what an exchange belongs to, or None; 0 is one."""
    return next((record[name] for name in _TRACES if record.get(name) not in (None, "")), None)


def response_before(record: Mapping[str, Any]) -> Any:
    """Return the id of the response that an exchange follows, or None."""
    return {**request_of(record), **response_of(record)}.get(CHAINED)


def is_chained(record: Mapping[str, Any]) -> bool:
    """Return whether an exchange says which response it follows, if only that it follows none."""
    return CHAINED in {**request_of(record), **response_of(record)}


def began_at(record: Mapping[str, Any]) -> int:
    """Return when an exchange began, in nanoseconds; 0 if it is not known."""
    places = (record, response_of(record))
    return moment(next((one[name] for one in places for name in _BEGAN if one.get(name)), 0))


def _is_unanswered(record: Mapping[str, Any]) -> bool:
    """Return whether messages were sent that do not end with the agent, as a chat's do."""
    sent = request_of(record).get("messages")
    last = sent[-1] if isinstance(sent, list) and sent else None
    return isinstance(last, dict) and role_of(last) not in AGENT_ROLES


def _logged(record: Mapping[str, Any], half: str) -> Mapping[str, Any]:
    """Return what was sent or answered in a log of Bedrock's invocations; the record if it is none."""
    logged = record.get(half)
    return logged.get(f"{half}BodyJson", record) if isinstance(logged, dict) else record


def _body(value: Any) -> Mapping[str, Any]:
    """Return the body of what was sent over HTTP, which may stand in it; empty if there is none."""
    inner = value.get("body", value) if isinstance(value, dict) else {}
    return inner if isinstance(inner, dict) else {}
