"""Tell logged episodes apart that have equal ids, and merge those that are the same.

An episode is identified by its id and its content. Of one that grew, the longer form counts; a repeated one counts
once. The file only distinguishes different episodes with equal ids.
"""

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.records import Trajectory, Turn

Row = dict[str, Any]
_BEGINNING = ("task_id", "instruction", "state", "action")
"""Columns of a first row in which different episodes of equal ids differ: ids may begin anew in each file."""
_CONTENT, _VERDICT = ("action", "next_state"), ("reward", "success")
"""Columns of all rows, and of the last one: two runs of a task may differ in nothing but their verdict."""


class NamesInUse:
    """Names of the episodes of a log, each with how its episode begins."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Create the table; callers use `names_in_use`.

        Args:
            database: Empty database.
        """
        self._database = database
        columns = "name TEXT PRIMARY KEY, beginning TEXT, content TEXT, verdict TEXT"
        database.execute(f"CREATE TABLE names ({columns}) WITHOUT ROWID")

    def distinguished(self, rows: list[Row]) -> list[Row]:
        """Return the rows of an episode; a name in use by another, which it does not continue, is followed by a digest.

        The digest is of how the episode begins, of what was done, or of its verdict, so that it has the same name wherever
        it comes again.
        """
        name = rows[0].get("trajectory_id") if rows else None
        if not isinstance(name, str):
            return rows
        begins = _digest([rows[0].get(column) for column in _BEGINNING])
        content = " ".join(_digest([row.get(column) for column in _CONTENT]) for row in rows)
        verdict = _digest([begins, *(rows[-1].get(column) for column in _VERDICT)])
        self._database.execute("INSERT OR IGNORE INTO names VALUES (?, ?, ?, ?)", (name, begins, content, verdict))
        found = self._database.execute("SELECT beginning, content, verdict FROM names WHERE name = ?", (name,))
        first, same, judged = found.fetchone()
        has_grown = same.startswith(f"{content} ") or content.startswith(f"{same} ")
        if first == begins and (has_grown or (same == content and judged == verdict)):
            return rows
        other = begins if first != begins else verdict if same == content else _digest([content])
        return [{**row, "trajectory_id": f"{name} ({other})"} for row in rows]


def _digest(values: list[Any]) -> str:
    return hashlib.sha256(repr(values).encode(errors="replace")).hexdigest()[:12]


@contextmanager
def names_in_use() -> Iterator[NamesInUse]:
    """Open an empty set of names, in a temporary database: a log may have more than fit in memory."""
    with closing(sqlite3.connect("")) as database:
        yield NamesInUse(database)


@dataclass
class Episodes:
    """Distinct episodes in the order they came, and the numbers of others that were merged into them."""

    trajectories: list[Trajectory] = field(default_factory=list)
    num_repeated: int = 0
    """Number of episodes that came again with the same content."""
    num_grown: int = 0
    """Number of episodes that also came in a shorter form."""


def distinct(read: Iterable[tuple[str, Trajectory]]) -> Episodes:
    """Return the distinct episodes of several files, each given with the name of its file."""
    found = Episodes()
    places: dict[str, list[int]] = defaultdict(list)
    for file, episode in read:
        known = places[episode.episode_id]
        place = next((at for at in known if _are_one(found.trajectories[at], episode)), None)
        if place is None:
            known.append(len(found.trajectories))
            named = f"{episode.episode_id} in {file}" if len(known) > 1 else episode.episode_id
            found.trajectories.append(replace(episode, episode_id=named))
        else:
            _merge(found, place, episode)
    return found


def _merge(found: Episodes, place: int, episode: Trajectory) -> None:
    present = found.trajectories[place]
    if len(present.turns) == len(episode.turns):
        found.num_repeated += 1
        return
    found.num_grown += 1
    if len(episode.turns) > len(present.turns):
        found.trajectories[place] = replace(episode, episode_id=present.episode_id)


def _are_one(one: Trajectory, other: Trajectory) -> bool:
    """Return whether two episodes of the same id have the same task, and one continues the other."""
    same_task = one.task.task_id == other.task.task_id
    return same_task and all(map(_is_same_turn, one.turns, other.turns))


def _is_same_turn(one: Turn, other: Turn) -> bool:
    return (one.state, one.action, one.step.state) == (other.state, other.action, other.step.state)
