"""Sessions of Codex: a file for each, with items of OpenAI's Responses on its lines, older ones without an envelope."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.message_content import text_in
from tasks.logs.shapes.responses import is_item

TITLE, SPANS_FILES = "Sessions of Codex", False
_OF_THE_PROGRAM = ("<environment_context>", "<user_instructions>")
_LINES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


_HEAD = {"id", "timestamp", "instructions"}
"""Fields of the first line of an older session."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a line of a session."""
    is_line = record.get("type") in _LINES and isinstance(record.get("payload"), dict)
    return is_line or record.keys() == {"record_type"} or _is_head(record) or is_item(record)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return an item, or the head of a session; other lines repeat what items say."""
    is_part = record.get("type") in ("session_meta", "response_item") or _is_head(record) or is_item(record)
    return [("session", record)] if is_part else []


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the session of a file."""
    said = [one.get("payload", one) for one in parts]
    head = next((one for one in said if not is_item(one)), {})
    items = [one for one in said if is_item(one) and not _is_of_the_program(one)]
    yield Recorded(items, {"trajectory_id": head.get("id"), "source": "Codex"})


def _is_of_the_program(item: dict[str, Any]) -> bool:
    """Return whether a message of the user holds what the program says of itself."""
    return item.get("role") == "user" and text_in(item).lstrip().startswith(_OF_THE_PROGRAM)


def _is_head(record: dict[str, Any]) -> bool:
    return _HEAD <= record.keys() <= _HEAD | {"git"}
