"""Demonstrations of Mind2Web: pages, and what people did on them; tables of it have a row for each action."""

import json
from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message

TITLE, SPANS_FILES = "Demonstrations of Mind2Web", False
_OF_ACTIONS = ("actions", "action_reprs", "operation", "cleaned_html", "raw_html")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a demonstration, or an action of one."""
    return "confirmed_task" in record and (isinstance(record.get("actions"), list) or "operation" in record)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the demonstration, which is an episode, or an action as a part of its demonstration."""
    return [(WHOLE if "actions" in record else str(record["annotation_id"]), record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the pages and operations as a conversation."""
    record, actions = parts[0], sorted(parts, key=lambda one: int(one.get("target_action_index", 0)))
    named = {"trajectory_id": record.get("annotation_id"), "instruction": record["confirmed_task"]}
    fields = {name: value for name, value in record.items() if name not in _OF_ACTIONS}
    yield Recorded([one for action in record.get("actions", actions) for one in _messages(action)], {**fields, **named})


def _messages(action: dict[str, Any]) -> list[Message]:
    operation = action["operation"] if isinstance(action["operation"], dict) else json.loads(action["operation"])
    done = f"{operation['op']} {operation.get('value') or ''}".strip()
    page = action.get("cleaned_html") or action.get("raw_html") or ""
    return [{"role": "user", "content": page}, {"role": "assistant", "content": done}]
