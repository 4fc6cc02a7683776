"""Traces of verifiers since its first version: a tree of messages, with weighted rewards."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.tracers.calls import OTHERS

TITLE, SPANS_FILES = "Traces of verifiers", False
_TREE = ("nodes", "calls", "rewards")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a trace, whose nodes are messages."""
    nodes = record.get("nodes")
    return isinstance(nodes, list) and bool(nodes) and all(isinstance(one, dict) and "message" in one for one in nodes)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the trace, which is an episode."""
    return [(WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the messages that lead to the last one, with the weighted sum of the rewards."""
    (record,) = parts
    nodes = record["nodes"]
    way = _way(nodes)
    about = record.get("task") or {}
    task = {"task_id": about.get("key"), "instruction": (about.get("data") or {}).get("prompt")}
    rewards = [one["score"] * one.get("weight", 1) for one in (record.get("rewards") or {}).values()]
    reward = {"reward": sum(rewards)} if rewards else {}
    fields = {name: value for name, value in record.items() if name not in (*_TREE, "task")}
    remarks = (OTHERS,) if len(way) < len(nodes) else ()
    yield Recorded([nodes[at]["message"] for at in way], {**fields, **task, **reward}, remarks)


def _way(nodes: list[dict[str, Any]]) -> list[int]:
    """Return the places of the nodes from the first message to the last one."""
    way, at = list[int](), len(nodes) - 1
    while at is not None and at not in way:
        way.append(at)
        at = nodes[at].get("parent")
    return way[::-1]
