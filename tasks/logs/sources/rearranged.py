"""Records rearranged as a mapping says: episodes out of their records, fields under their usual names."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from schemas.recipes.log_mapping import ItemField, LogMapping
from tasks.logs.known_kinds import kind_of_record
from tasks.logs.messages import messages_in, value_at
from tasks.logs.sources.eval_logs import with_attachments
from tasks.logs.sources.records import Record

_RESULTS = "results"
"""Field of results, which are no episodes beside steps or the like."""
_EPISODES = ("samples", "simulations", "episodes", "traces", "data", "rows", _RESULTS)
"""Fields of a record that hold its episodes."""
_USUAL = {"text": "content"}
"""Usual names of fields in messages and steps that differ from those of the mapping."""
_CALL: tuple[ItemField, ItemField] = ("call", "arguments")


def rearranged(record: Record, mapping: LogMapping) -> list[Record]:
    """Return the episodes of a record, or the record itself, with the fields of messages and steps under usual names."""
    if record.reason:
        return [record]
    inner = _named_episodes(record, mapping.episodes_at) if mapping.episodes_at else _usual_episodes(record)
    inner = [replace(one, value=with_attachments(one.value)) for one in inner]
    return [replace(one, value=_renamed(one.value, mapping.names)) for one in inner] if mapping.names else inner


def _usual_episodes(record: Record) -> list[Record]:
    """Return the episodes under a usual name, as the samples of an evaluation, or each under its own."""
    for name in _EPISODES:
        inner = record.value.get(name) or []
        if not _are_records(inner) or kind_of_record(record.value, ""):
            continue
        if name != _RESULTS or not any(_are_records(one) for key, one in record.value.items() if key != name):
            return [Record(f"{record.where}, {name} {number}", one) for number, one in enumerate(inner, 1)]
    if record.value and all(map(_is_chat, record.value.values())):
        named = {name: {"trajectory_id": name, **one} for name, one in record.value.items()}
        return [Record(f"{record.where}, {name}", one) for name, one in named.items()]
    return [record]


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _is_chat(value: Any) -> bool:
    return isinstance(value, dict) and messages_in(value, "") is not None


def _named_episodes(record: Record, path: str) -> list[Record]:
    """Return the episodes at a path, each with the other fields of the record, unless it has its own."""
    inner = value_at(record.value, path)
    if not isinstance(inner, list) or not all(isinstance(one, dict) for one in inner):
        return [replace(record, reason=f"has no list of episodes at {path}")]
    outer = {name: value for name, value in record.value.items() if name != path.partition(".")[0]}
    return [Record(f"{record.where}, {path} {number}", {**outer, **one}) for number, one in enumerate(inner, 1)]


def _renamed(value: dict[str, Any], names: Mapping[ItemField, str]) -> dict[str, Any]:
    """Return a record with usual names in itself, if it is a message or a step, and in all its lists of such."""
    lists = {name: [_item(item, names) for item in items] for name, items in value.items() if _are_records(items)}
    return _item({**value, **lists}, names)


def _item(item: dict[str, Any], names: Mapping[ItemField, str]) -> dict[str, Any]:
    """Return a message or a step with usual names, as far as it has values at the paths of the mapping."""
    found = {name: value for name, path in names.items() if (value := value_at(item, path)) is not None}
    usual = {_USUAL.get(name, name): value for name, value in found.items() if name not in _CALL}
    if "call" in found:
        call = {"name": found["call"], "arguments": found.get("arguments")}
        usual = {"content": "", **usual, "tool_calls": [{"function": call}]}
    return {**item, **usual}
