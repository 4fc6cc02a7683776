"""Convert episodes of a log to rows of logged transitions (schemas/tables.py), as a mapping describes."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path, PurePath
from typing import Any

from schemas.recipes.log_mapping import LogMapping
from schemas.tables import LOG_SCHEMA_VERSION
from tasks.logs.clean_text import CUT, clean, short_state, short_text
from tasks.logs.conversations import THE_BEGINNING, Conversation, conversation_of, requests_of
from tasks.logs.generic.completions import only_reward
from tasks.logs.known_kinds import CHAT, TRANSITIONS, kind_of_record, known_kinds, require_kind, spans_files
from tasks.logs.log_kind import NOT_UNDERSTOOD, WHOLE, Recorded
from tasks.logs.messages import messages_in, value_at
from tasks.logs.sources.beside import VerdictsBeside
from tasks.logs.sources.gathered import GatheredParts, temporary_parts
from tasks.logs.sources.rearranged import rearranged
from tasks.logs.sources.records import RAW_CHARACTERS, Record, records_in
from tasks.logs.verdicts import verdict_on

_NAMES = ("id", "item_id", "instance_id", "conversation_id", "gen_ai.conversation.id")
_INSTRUCTIONS = ("info.task.instruction", "goal", "info.goal", "confirmed_task", "utterances")


@dataclass(frozen=True, slots=True)
class Episode:
    """Episode in a log: the rows of one trajectory, or the reason why there are none."""

    where: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""
    raw: str = ""
    remarks: tuple[str, ...] = ()
    """Changes that were made to what the log says, and contradictions in it."""
    kind: str = ""
    """Name of the kind of its log; empty if it is not known."""
    verdict_at: str = ""
    """Field that gave its verdict."""


def episodes_in(
    files: Mapping[str, Path], mapping: LogMapping, verdicts: VerdictsBeside | None = None
) -> Iterator[Episode]:
    """Yield all episodes in files.

    Rows of one trajectory must be adjacent; parts of other episodes may be anywhere. A verdict may be in a file beside that
    of its episode. A file with records of which none is a part of an episode is said to hold none.

    Args:
        files: Files by name.
        mapping: Locations of the fields in a log's records.
        verdicts: Verdicts beside these files; otherwise those among them.

    Raises:
        DataError: the mapping names an unknown format.
    """
    require_kind(mapping.format)
    verdicts = verdicts or VerdictsBeside(files)
    with temporary_parts() as gathered:
        for name, file in files.items():
            if name not in verdicts.read:
                yield from _in_file(name, _records(file, name, mapping, verdicts.on(name)), mapping, gathered)
        for one in gathered.episodes():
            where = f"{one.place}, episode {one.name}"
            yield from _recorded(one.kind, where, one.parts, mapping, {"trajectory_id": one.name})


def _records(file: Path, name: str, mapping: LogMapping, beside: dict[str, Any]) -> Iterator[Record]:
    """Yield the records of a file as the mapping says, with the verdict that is beside it as far as they have none."""
    for record in records_in(file, name):
        for one in rearranged(record, mapping):
            said = {name: value for name, value in beside.items() if one.value.get(name) is None}
            yield replace(one, value={**one.value, **said}) if said and not one.reason else one


def _in_file(name: str, records: Iterator[Record], mapping: LogMapping, gathered: GatheredParts) -> Iterator[Episode]:
    """Yield the episodes that a file holds completely, and keep the parts of others."""
    first, before, is_silent = next(records, None), gathered.num_parts, True
    for one in _as_episodes(name, chain([first], records), mapping, gathered) if first else ():
        yield one
        is_silent = False
    if first and is_silent and gathered.num_parts == before:
        yield Episode(first.where, reason="is a file without any part of an episode", raw=_raw(first))


def _as_episodes(
    name: str, records: Iterable[Record], mapping: LogMapping, gathered: GatheredParts
) -> Iterator[Episode]:
    if mapping.joined_by or mapping.file_is_episode:
        yield from _joined(records, mapping, gathered, name)
        return
    for kind, some in groupby(records, partial(_kind, mapping=mapping)):
        yield from _episodes(kind, some, partial(_gather, gathered, kind, name), mapping)


def _joined(records: Iterable[Record], mapping: LogMapping, gathered: GatheredParts, file: str) -> Iterator[Episode]:
    """Keep records as messages or steps of the episodes that they belong to; yield those that name none."""
    kind = mapping.format or CHAT
    for one in chain.from_iterable(map(_apart, records)):
        name = file if mapping.file_is_episode else value_at(one.value, mapping.joined_by)
        if one.reason or name is None:
            reason = one.reason or f"has nothing at {mapping.joined_by}, which joins the records of an episode"
            yield Episode(one.where, reason=reason, raw=_raw(one), kind="" if one.reason else kind)
        else:
            gathered.add(kind, "", str(name), one.value, one.where)


def _apart(record: Record) -> list[Record]:
    """Return the messages of an array of messages, which is a record, as records; else the record."""
    if record.value.keys() != {"messages"}:
        return [record]
    return [Record(f"{record.where} item {number}", one) for number, one in enumerate(record.value["messages"], 1)]


def _kind(record: Record, mapping: LogMapping) -> str:
    """Return the kind of a record; empty if it is unreadable or of none that is known."""
    if record.reason or mapping.format:
        return "" if record.reason else mapping.format
    return kind_of_record(record.value, mapping.messages.at)


def _gather(gathered: GatheredParts, kind: str, file: str, name: str, part: dict[str, Any], where: str) -> None:
    gathered.add(kind, "" if spans_files(kind) else _scope(file), name, part, where)


def _scope(file: str) -> str:
    """Return where the names of episodes in a file hold: the file, or its folder if that has a file for each event."""
    folder = PurePath(file).parent
    return str(folder) if folder.name == "events" else file


def _episodes(
    kind: str, records: Iterable[Record], gather: Callable[[str, dict[str, Any], str], None], mapping: LogMapping
) -> Iterator[Episode]:
    """Yield the episodes of records of one kind, and keep the parts of others until all files were read."""
    if kind == "":
        yield from (
            Episode(one.where, reason=one.reason or "is no log of a known format", raw=_raw(one)) for one in records
        )
    elif kind == TRANSITIONS:
        yield from _trajectories(records)
    elif kind == CHAT:
        yield from (_chat(one, mapping) for one in records)
    else:
        for one in records:
            yield from _of_kind(kind, one, gather, mapping)


def _trajectories(records: Iterable[Record]) -> Iterator[Episode]:
    for _, some in groupby(records, lambda record: record.value.get("trajectory_id")):
        together = list(some)
        yield Episode(together[0].where, [one.value for one in together], kind=TRANSITIONS)


def _chat(record: Record, mapping: LogMapping) -> Episode:
    messages = messages_in(record.value, mapping.messages.at)
    if messages is None:
        reason = "has no list of messages: say where it is in messages.at"
        return Episode(record.where, reason=reason, raw=_raw(record), kind=CHAT)
    return _episode(Recorded(messages, {**only_reward(record.value), **record.value}), record, mapping, CHAT)


def _of_kind(
    kind: str, record: Record, gather: Callable[[str, dict[str, Any], str], None], mapping: LogMapping
) -> Iterator[Episode]:
    try:
        parts = list(known_kinds()[kind].parts_of(record.value))
    except NOT_UNDERSTOOD as error:
        yield Episode(record.where, reason=_not_understood(error), raw=_raw(record), kind=kind)
        return
    for name, part in parts:
        if name == WHOLE:
            yield from _recorded(kind, record.where, [part], mapping, {})
        else:
            gather(name, part, record.where)


def _recorded(
    kind: str, where: str, parts: list[dict[str, Any]], mapping: LogMapping, named: dict[str, Any]
) -> Iterator[Episode]:
    """Yield the episodes of parts that are complete."""
    try:
        found = list(_talk(parts) if kind == CHAT else known_kinds()[kind].recorded(parts))
    except NOT_UNDERSTOOD as error:
        yield Episode(where, reason=_reason(error), raw=_raw(Record(where, {"parts": parts})), kind=kind)
        return
    for number, one in enumerate(found, 1):
        place = where if len(found) == 1 else f"{where}, episode {number}"
        fields = {**named, **{name: value for name, value in one.fields.items() if value is not None}}
        record = Record(place, {**fields, "messages": one.messages})
        if one.reason:
            yield Episode(place, reason=one.reason, raw=_raw(record), kind=kind)
        else:
            yield _episode(Recorded(one.messages, fields, one.remarks), record, mapping, kind)


def _talk(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield a conversation whose messages are records of their own; the last that has a field gives its value."""
    yield Recorded(parts, {name: value for part in parts for name, value in part.items() if value is not None})


def _episode(one: Recorded, record: Record, mapping: LogMapping, kind: str) -> Episode:
    try:
        turns = requests_of if mapping.states == "conversations" else conversation_of
        return _rows(one, turns(one.messages, mapping.messages), mapping, record.where, kind)
    except NOT_UNDERSTOOD as error:
        return Episode(record.where, reason=_reason(error), raw=_raw(record), kind=kind)


def _reason(error: Exception) -> str:
    """Return what an error says of a log; of one that Python raised, that something is not understood."""
    return str(error) if type(error) is ValueError else _not_understood(error)


def _not_understood(error: Exception) -> str:
    return f"is not understood ({type(error).__name__}: {error})"


def _raw(record: Record) -> str:
    return (record.raw or json.dumps(record.value, ensure_ascii=False, default=str))[:RAW_CHARACTERS]


def _rows(one: Recorded, talk: Conversation, mapping: LogMapping, where: str, kind: str) -> Episode:
    asked, odd = clean(_instruction(one.fields, talk, mapping))
    instruction, is_long = short_text(asked)
    said, last = _said_of_all(one.fields, instruction, mapping, where), len(talk.actions) - 1
    verdict = verdict_on(partial(_field, one.fields, mapping), mapping, len(talk.actions))
    states = [short_state(text, mapping.state_line) for text in talk.seen]
    actions = [short_text(action) for action in talk.actions]
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
        for turn, (action, _) in enumerate(actions)
    ]
    cut = (CUT,) if is_long or any(is_cut for _, is_cut in (*states, *actions)) else ()
    remarks = dict.fromkeys((*one.remarks, *talk.remarks, *odd, *verdict.remarks, *cut))
    return Episode(where, rows, remarks=tuple(remarks), kind=kind, verdict_at=verdict.found_at)


def _field(record: dict[str, Any], mapping: LogMapping, name: Any, *other_names: str) -> Any:
    """Return the value of a field: a constant of the mapping, at its path, or the first that is there under a usual name."""
    if name in mapping.constants:
        return mapping.constants[name]
    paths = [mapping.paths[name]] if name in mapping.paths else [name, *other_names]
    return next((found for found in (value_at(record, path) for path in paths) if found is not None), None)


def _instruction(record: dict[str, Any], talk: Conversation, mapping: LogMapping) -> str:
    """Return what was asked: a field, or what the agent saw first.

    Raises:
        ValueError: the log does not say it.
    """
    said = partial(_field, record, mapping)
    named = said("instruction", *_INSTRUCTIONS) or _worded(said("task")) or talk.asked
    seen = next((one for one in talk.seen[:-1] if one.strip()), THE_BEGINNING)
    if not named and seen == THE_BEGINNING:
        raise ValueError("does not say what was asked: map `instruction`")
    return str(named or seen)


def _said_of_all(record: dict[str, Any], instruction: str, mapping: LogMapping, where: str) -> dict[str, Any]:
    """Return the fields that are the same in all rows of an episode."""
    said = partial(_field, record, mapping)
    digest = hashlib.sha256(instruction.encode()).hexdigest()
    task_id, name = said("task_id"), said("trajectory_id")
    return {
        "trajectory_id": _named(_repeated(said(*_NAMES), said("epoch")) if name is None else name, where),
        "task_id": _named(task_id, f"task/{digest[:16]}"),
        "instruction": instruction,
        "family": _named(said("family") or None, "logged"),
        "source": _named(said("source") or None, "an imported log"),
        **{"split": "train", "seed": 0, "schema_version": LOG_SCHEMA_VERSION},
    }


def _named(value: Any, otherwise: str) -> str:
    """Return a name as a line of text; 0 is one, and no text is none."""
    return otherwise if value is None or value == "" else " ".join(clean(str(value))[0].split())


def _repeated(name: Any, epoch: Any) -> Any:
    """Return a name; that of a sample which inspect ran again has the number of its epoch."""
    return name if name is None or epoch in (None, 1) else f"{name} (epoch {epoch})"


def _worded(task: Any) -> str:
    """Return a task that is said in words; a single word names an environment or a kind of task."""
    return task if isinstance(task, str) and " " in task.strip() else ""
