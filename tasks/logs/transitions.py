"""Convert episodes of a log to rows of logged transitions (schemas/tables.py), as a mapping describes."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

from schemas.recipes.log_mapping import LogFormat, LogMapping
from schemas.tables import LOG_SCHEMA_VERSION
from tasks.logs.clean_text import CUT, clean, short_state
from tasks.logs.conversations import Conversation, conversation_of, requests_of
from tasks.logs.messages import messages_in, value_at
from tasks.logs.sources.records import RAW_CHARACTERS, Record, records_in
from tasks.logs.tracers import langfuse, mlflow
from tasks.logs.tracers.otlp import NOT_UNDERSTOOD, Trace, spans_of, trace_of
from tasks.logs.tracers.spans import SpansByTrace, temporary_spans
from tasks.logs.verdicts import verdict_on

_NAMES = ("id", "item_id", "instance_id", "conversation_id", "gen_ai.conversation.id")
_EPISODES = ("samples", "simulations", "episodes")
"""Fields of a record that hold its episodes."""
_INSTRUCTIONS = ("info.task.instruction", "goal", "info.goal", "confirmed_task")
_TRACERS: dict[LogFormat, ModuleType] = {"mlflow": mlflow, "langfuse": langfuse}
_ROWS_OF_ONE_EPISODE = ("trajectory_id", "turn", "next_state")
"""Columns by which a record is recognised as a row of logged transitions."""


@dataclass(frozen=True, slots=True)
class Episode:
    """Episode in a log: the rows of one trajectory, or the reason why there are none."""

    where: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""
    raw: str = ""
    remarks: tuple[str, ...] = ()
    """Changes that were made to what the log says, and contradictions in it."""


def episodes_in(files: Mapping[str, Path], mapping: LogMapping) -> Iterator[Episode]:
    """Yield all episodes in files, given by name.

    Rows of one trajectory must be adjacent; spans of one trace may be anywhere.
    """
    with temporary_spans() as spans:
        for name, file in files.items():
            for kind, some in groupby(records_in(file, name), partial(_kind, mapping=mapping)):
                if kind == "otel":
                    yield from _kept(some, spans)
                else:
                    yield from _episodes(kind, some, mapping)
        for trace, where, some in spans.traces():
            yield _of_trace(f"{where}, trace {trace}", trace_of(trace, some), mapping)


def _episodes(kind: LogFormat | None, records: Iterable[Record], mapping: LogMapping) -> Iterator[Episode]:
    if kind == "transitions":
        return _trajectories(records)
    if kind is None:
        return (
            Episode(one.where, reason=one.reason or "is no log of a known format", raw=_raw(one)) for one in records
        )
    return (_episode(one, mapping, _TRACERS.get(kind)) for record in records for one in _inner(record))


def _kind(record: Record, mapping: LogMapping) -> LogFormat | None:
    """Return the format of a record; None if it is unreadable or of no known format."""
    if record.reason or mapping.format:
        return None if record.reason else mapping.format
    if "resourceSpans" in record.value:
        return "otel"
    for name, tracer in _TRACERS.items():
        if tracer.is_trace(record.value):
            return name
    if all(name in record.value for name in _ROWS_OF_ONE_EPISODE):
        return "transitions"
    return "chat" if any(messages_in(one.value, mapping.messages.at) is not None for one in _inner(record)) else None


def _inner(record: Record) -> list[Record]:
    """Return the episodes inside a record, as the samples of an evaluation; the record itself if there are none."""
    for name in _EPISODES:
        inner = record.value.get(name)
        if isinstance(inner, list) and inner and all(isinstance(one, dict) for one in inner):
            return [Record(f"{record.where}, {name} {number}", one) for number, one in enumerate(inner, 1)]
    return [record]


def _trajectories(records: Iterable[Record]) -> Iterator[Episode]:
    for _, some in groupby(records, lambda record: record.value.get("trajectory_id")):
        together = list(some)
        yield Episode(together[0].where, [one.value for one in together])


def _kept(exports: Iterable[Record], spans: SpansByTrace) -> Iterator[Episode]:
    """Collect the spans of exports until traces are complete; yield the reason for each export that is rejected."""
    for one in exports:
        try:
            spans.add(spans_of(one.value), one.where)
        except NOT_UNDERSTOOD as error:
            yield Episode(one.where, reason=_not_understood(error), raw=_raw(one))


def _of_trace(where: str, trace: Trace, mapping: LogMapping) -> Episode:
    record = Record(where, trace.record)
    reason = trace.reason or ("" if trace.record["messages"] else "no span of it holds messages")
    return Episode(where, reason=reason, raw=_raw(record)) if reason else _episode(record, mapping)


def _episode(record: Record, mapping: LogMapping, tracer: ModuleType | None = None) -> Episode:
    try:
        value = tracer.conversation_in(record.value) if tracer else record.value
        messages = messages_in(value, mapping.messages.at)
        if messages is None:
            raise ValueError("has no list of messages: say where it is in messages.at")
        turns = requests_of if mapping.states == "conversations" else conversation_of
        return _rows(value, turns(messages, mapping.messages), mapping, record.where)
    except ValueError as error:
        return Episode(record.where, reason=str(error), raw=_raw(record))
    except (KeyError, TypeError, AttributeError) as error:
        return Episode(record.where, reason=_not_understood(error), raw=_raw(record))


def _not_understood(error: Exception) -> str:
    return f"is not understood ({type(error).__name__}: {error})"


def _raw(record: Record) -> str:
    return (record.raw or json.dumps(record.value, ensure_ascii=False, default=str))[:RAW_CHARACTERS]


def _rows(record: dict[str, Any], talk: Conversation, mapping: LogMapping, where: str) -> Episode:
    said, last = _said_of_all(record, talk, mapping, where), len(talk.actions) - 1
    verdict = verdict_on(partial(_field, record, mapping), mapping, len(talk.actions))
    states = [short_state(text, mapping.state_line) for text in talk.seen]
    rows = [
        {
            **said,
            **{"turn": turn, "state": states[turn][0], "thought": talk.thoughts[turn]},
            **{"action": action, "next_state": states[turn + 1][0]},
            "done": turn == last and not verdict.truncated,
            "success": turn == last and verdict.success and not verdict.truncated,
            "truncated": turn == last and verdict.truncated,
            "reward": verdict.rewards[turn],
        }
        for turn, action in enumerate(talk.actions)
    ]
    cut = (CUT,) if any(is_cut for _, is_cut in states) else ()
    return Episode(where, rows, remarks=(*talk.remarks, *verdict.remarks, *cut))


def _field(record: dict[str, Any], mapping: LogMapping, name: Any, *other_names: str) -> Any:
    """Return the value of a field: a constant of the mapping, at its path, or the first that is there under a usual name."""
    if name in mapping.constants:
        return mapping.constants[name]
    paths = [mapping.paths[name]] if name in mapping.paths else [name, *other_names]
    return next((found for found in (value_at(record, path) for path in paths) if found is not None), None)


def _said_of_all(record: dict[str, Any], talk: Conversation, mapping: LogMapping, where: str) -> dict[str, Any]:
    """Return the fields that are the same in all rows of an episode."""
    said = partial(_field, record, mapping)
    instruction, _ = clean(
        str(said("instruction", *_INSTRUCTIONS) or _worded(said("task")) or talk.asked or talk.seen[0])
    )
    digest = hashlib.sha256(instruction.encode()).hexdigest()
    task_id = said("task_id")
    return {
        "trajectory_id": _named(said("trajectory_id", *_NAMES), where),
        "task_id": _named(task_id, f"task/{digest[:16]}"),
        "instruction": instruction,
        "family": str(said("family") or "logged"),
        "source": str(said("source") or "an imported log"),
        **{"split": "train", "seed": 0, "schema_version": LOG_SCHEMA_VERSION},
    }


def _named(value: Any, otherwise: str) -> str:
    """Return a name as text; 0 is one, and no text is none."""
    return otherwise if value is None or value == "" else str(value)


def _worded(task: Any) -> str:
    """Return a task that is said in words; a single word names an environment or a kind of task."""
    return task if isinstance(task, str) and " " in task.strip() else ""
