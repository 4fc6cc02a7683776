"""Sessions of Claude Code: a line for each message, which names the one before it; what it prints as a stream does not."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded

TITLE, SPANS_FILES = "Sessions of Claude Code", True
_PRINTED = ("system", "user", "assistant", "result", "stream_event")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a line of a session."""
    is_printed = "session_id" in record and record.get("type") in _PRINTED
    return is_printed or "sessionId" in record or (record.get("type") == "summary" and "leafUuid" in record)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return a message as a part of its session; other lines, and messages of sub-agents, are none."""
    is_message = isinstance(record.get("message"), dict) and ("uuid" in record or "session_id" in record)
    is_aside = record.get("isSidechain") or record.get("isMeta") or record.get("parent_tool_use_id")
    return [(record.get("sessionId") or record["session_id"], record)] if is_message and not is_aside else []


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation that leads to the last message: a message that was edited leaves a branch behind.

    A message that names none before it, as after a compaction, follows the line before it. Errors that the program puts
    into the agent's mouth are left out.
    """
    places: dict[str, int] = {}
    for place, one in enumerate(parts):
        places.setdefault(one.get("uuid", ""), place)
    way, at = list[dict[str, Any]](), len(parts) - 1
    while at >= 0:
        way += [] if parts[at].get("isApiErrorMessage") else [parts[at]["message"]]
        parent = parts[at].get("parentUuid") or parts[at].get("logicalParentUuid")
        before = places.get(parent, at) if parent else at
        at = before if before < at else at - 1
    yield Recorded(way[::-1], {"source": "Claude Code"})
