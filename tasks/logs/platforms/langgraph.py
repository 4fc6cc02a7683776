"""States of threads of LangGraph: each has all messages so far, and the last one is the episode."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded

TITLE, SPANS_FILES = "States of LangGraph", True


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a state of a thread."""
    return isinstance(record.get("values"), dict) and "checkpoint" in record


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the state as a part of its thread."""
    return [(str(record["checkpoint"]["thread_id"]), record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation of the state with most messages, with its metadata and values."""
    last = max(parts, key=lambda one: len(_messages(one)))
    values = {name: value for name, value in last["values"].items() if name != "messages"}
    yield Recorded(_messages(last), {"metadata": last.get("metadata"), **values})


def _messages(state: dict[str, Any]) -> list[dict[str, Any]]:
    return state["values"].get("messages") or []
