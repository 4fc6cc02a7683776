"""Demonstrations of Mind2Web: pages, and what people did on them."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message

TITLE, SPANS_FILES = "Demonstrations of Mind2Web", False


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a demonstration."""
    return "confirmed_task" in record and isinstance(record.get("actions"), list)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the demonstration, which is an episode."""
    return [(WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the pages and operations as a conversation."""
    (record,) = parts
    named = {"trajectory_id": record.get("annotation_id"), "instruction": record["confirmed_task"]}
    fields = {name: value for name, value in record.items() if name not in ("actions", "action_reprs")}
    yield Recorded([one for action in record["actions"] for one in _messages(action)], {**fields, **named})


def _messages(action: dict[str, Any]) -> list[Message]:
    operation = action["operation"]
    done = f"{operation['op']} {operation.get('value') or ''}".strip()
    page = action.get("cleaned_html") or action.get("raw_html") or ""
    return [{"role": "user", "content": page}, {"role": "assistant", "content": done}]
