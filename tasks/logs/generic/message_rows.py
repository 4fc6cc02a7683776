"""Messages as rows of a table, with the name of their conversation: what stores of chats and CSV hold."""

from collections.abc import Iterator, Sequence
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.shapes.in_words import Message, decoded
from tasks.logs.shapes.openai_shape import is_message
from tasks.logs.tracers.calls import moment
from tasks.logs.verdicts import as_number

TITLE, SPANS_FILES = "Rows of messages", False

_NAMES = (
    *("conversation_id", "session_id", "thread_id", "chat_id", "dialog_id"),
    *("trajectory_id", "traj_id", "episode_id", "rollout_id"),
)
_NUMBERS = ("message_index", "turn", "position", "index", "step")
_TIMES = ("created_at", "createdAt", "timestamp", "time", "created")
_INNER = "message"
"""Field that holds the whole message, which may be JSON in text."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a message with the name of its conversation."""
    return _name(record) is not None and is_message(_message(record))


def names_conversation(record: dict[str, Any]) -> bool:
    """Return whether a message names the conversation that it belongs to."""
    return _name(record) is not None


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the message as a part of its conversation."""
    return [(str(_name(record)), record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation, by numbers or times of its messages, if all have one; the last with a field gives its value."""
    numbers = [as_number(_first(one, _NUMBERS)) for one in parts]
    times = [moment(_first(one, _TIMES)) or None for one in parts]
    order = next((some for some in (numbers, times) if None not in some), [0] * len(parts))
    parts = [one for _, one in sorted(zip(order, parts, strict=True), key=lambda pair: pair[0] or 0)]
    fields = {name: value for part in parts for name, value in part.items() if value is not None}
    yield Recorded(list(map(_message, parts)), fields)


def _name(record: dict[str, Any]) -> Any:
    return _first(record, _NAMES)


def _first(record: dict[str, Any], names: Sequence[str]) -> Any:
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)


def _message(record: dict[str, Any]) -> Message:
    inner = decoded(record.get(_INNER))
    return inner if isinstance(inner, dict) else record
