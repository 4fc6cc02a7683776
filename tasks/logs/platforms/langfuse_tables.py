"""Tables of Langfuse: rows of observations, scores and traces, as it exports them to blob storage and from its pages.

Names are in snake case or in camel case, and values of CSV are JSON in text. Rows of one trace may be in several files.
"""

import re
from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.platforms import langfuse
from tasks.logs.shapes.in_words import decoded

TITLE, SPANS_FILES = "Tables of Langfuse", True

_TYPES = "SPAN EVENT GENERATION AGENT TOOL CHAIN RETRIEVER EVALUATOR EMBEDDING GUARDRAIL".split()
_OF_A_TRACE = ("bookmarked", "timestamp", "input", "output")
_SIGNS = {"traceId", "trace_id", _OF_A_TRACE[0]}
"""Fields of which every row has one."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a row of a table; a trace with its observations is not."""
    if not _SIGNS & record.keys():
        return False
    row = _in_camel_case(record)
    return "observations" not in row and (_is_observation(row) or _is_score(row) or _is_trace(row))


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the row as a part of its trace."""
    row = {name: decoded(value) for name, value in _in_camel_case(record).items()}
    return [(str(row["id"] if _is_trace(row) else row["traceId"]), row)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the agent's conversation as of a trace with its observations; without any, of the trace's input and output.

    Raises:
        ValueError: no generation holds messages.
    """
    observations = [one for one in parts if _is_observation(one)]
    trace: dict[str, Any] = next((one for one in parts if _is_trace(one)), {"id": parts[0].get("traceId", "")})
    scores = [one for one in parts if _is_score(one)]
    beside = trace.get("scores") or {}  # as the pages export them: names with lists of values
    scores += [{"name": name, "value": values[-1]} for name, values in beside.items() if values]
    whole = [{**trace, "type": "GENERATION", "startTime": trace.get("timestamp")}]
    yield from langfuse.recorded([{**trace, "observations": observations or whole, "scores": scores}])


def _is_observation(row: dict[str, Any]) -> bool:
    return row.get("type") in _TYPES and {"traceId", "startTime"} <= row.keys()


def _is_score(row: dict[str, Any]) -> bool:
    return {"traceId", "name", "value", "dataType"} <= row.keys()


def _is_trace(row: dict[str, Any]) -> bool:
    return all(name in row for name in _OF_A_TRACE) and "traceId" not in row


def _in_camel_case(record: dict[str, Any]) -> dict[str, Any]:
    return {re.sub(r"_([a-z])", lambda found: found[1].upper(), name): value for name, value in record.items()}
