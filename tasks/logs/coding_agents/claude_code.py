"""Sessions of Claude Code: a line for each message, which names the one before it; what it prints as a stream does not."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.message_content import text_in

TITLE, SPANS_FILES = "Sessions of Claude Code", True
_RESULT = "result"
_PRINTED = ("system", "user", "assistant", _RESULT, "stream_event")
_OF_THE_PROGRAM = ("<command-name>", "<command-message>", "<local-command-stdout>", "[Request interrupted by user")
"""Beginnings of texts that the program writes into the user's mouth."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a line of a session."""
    is_printed = "session_id" in record and record.get("type") in _PRINTED
    return is_printed or "sessionId" in record or (record.get("type") == "summary" and "leafUuid" in record)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return a message as a part of its session; other lines, and messages of sub-agents, are none."""
    is_message = isinstance(record.get("message"), dict) and ("uuid" in record or "session_id" in record)
    is_aside = record.get("isSidechain") or record.get("isMeta") or record.get("parent_tool_use_id")
    is_part = (is_message and not is_aside) or record.get("type") == _RESULT
    return [(record.get("sessionId") or record["session_id"], record)] if is_part else []


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation that leads to the last message: a message that was edited leaves a branch behind.

    A message that names none before it, as after a compaction, follows the line before it. What the program puts into the
    agent's or the user's mouth is left out, as errors and commands.
    """
    lines = [one for one in parts if one.get("type") != _RESULT]
    end = next((one for one in parts if one.get("type") == _RESULT), {})
    said = [lines[place]["message"] for place in _way(lines) if not _is_of_the_program(lines[place])]
    yield Recorded(said, {"source": "Claude Code", "subtype": end.get("subtype")})


def _way(lines: list[dict[str, Any]]) -> list[int]:
    """Return the places of the lines that lead to the last one, with the results of other calls made at once."""
    places: dict[str, int] = {}
    for place, one in enumerate(lines):
        places.setdefault(one.get("uuid", ""), place)
    way, at = set[int](), len(lines) - 1
    while at >= 0:
        way.add(at)
        parent = lines[at].get("parentUuid") or lines[at].get("logicalParentUuid")
        before = places.get(parent, at) if parent else at
        at = before if before < at else at - 1
    known = {lines[at].get("uuid") for at in way}
    results = {at for at, one in enumerate(lines) if one.get("parentUuid") in known and _is_result(one)}
    return sorted(way | results)


def _is_result(line: dict[str, Any]) -> bool:
    content = line["message"].get("content")
    return isinstance(content, list) and any(
        isinstance(one, dict) and one.get("type") == "tool_result" for one in content
    )


def _is_of_the_program(line: dict[str, Any]) -> bool:
    content = line["message"].get("content")
    return bool(line.get("isApiErrorMessage")) or text_in({"content": content}).lstrip().startswith(_OF_THE_PROGRAM)
