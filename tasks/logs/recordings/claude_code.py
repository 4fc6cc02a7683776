"""Sessions of Claude Code: a line for each message, which names the one before it."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded

TITLE, SPANS_FILES = "Sessions of Claude Code", True


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a line of a session."""
    return "sessionId" in record or (record.get("type") == "summary" and "leafUuid" in record)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return a message as a part of its session; other lines, and messages of sub-agents, are none."""
    is_message = isinstance(record.get("message"), dict) and "uuid" in record
    return (
        [(record["sessionId"], record)]
        if is_message and not (record.get("isSidechain") or record.get("isMeta"))
        else []
    )


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation that leads to the last message: a message that was edited leaves a branch behind.

    A message that names none before it, as after a compaction, follows the line before it.
    """
    places: dict[str, int] = {}
    for place, one in enumerate(parts):
        places.setdefault(one["uuid"], place)
    way, at = list[dict[str, Any]](), len(parts) - 1
    while at >= 0:
        way.append(parts[at]["message"])
        parent = parts[at].get("parentUuid") or parts[at].get("logicalParentUuid")
        before = places.get(parent, at) if parent else at
        at = before if before < at else at - 1
    yield Recorded(way[::-1], {"source": "Claude Code"})
