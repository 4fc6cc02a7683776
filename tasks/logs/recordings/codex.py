"""Sessions of Codex: a file for each, with items of OpenAI's Responses on its lines."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded

TITLE, SPANS_FILES = "Sessions of Codex", False
_LINES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a line of a session."""
    return record.get("type") in _LINES and isinstance(record.get("payload"), dict)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return an item, or the head of a session; other lines repeat what items say."""
    return [("session", record)] if record["type"] in ("session_meta", "response_item") else []


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the session of a file."""
    head = next((one["payload"] for one in parts if one["type"] == "session_meta"), {})
    items = [one["payload"] for one in parts if one["type"] == "response_item"]
    yield Recorded(items, {"trajectory_id": head.get("id"), "source": "Codex"})
