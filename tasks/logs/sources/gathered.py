"""Gather the parts of episodes in a temporary database: logs may hold them in any order, and more than fit in memory."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from schemas.errors import StorageError

_TABLES = """
PRAGMA journal_mode = OFF;
CREATE TABLE episodes (number INTEGER PRIMARY KEY, kind TEXT, scope TEXT, name TEXT, place TEXT, UNIQUE (kind, scope, name));
CREATE TABLE parts (episode INTEGER, part TEXT);
"""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Parts of one episode."""

    kind: str
    name: str
    place: str
    """Place of the first part."""
    parts: list[dict[str, Any]]
    """Parts in the order in which they came."""


class GatheredParts:
    """Parts of episodes, added in any order and read episode by episode."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Create the tables; callers use `temporary_parts`.

        Args:
            database: Empty database.
        """
        self._database = database
        self.num_parts = 0
        database.executescript(_TABLES)

    def add(self, kind: str, scope: str, name: str, part: dict[str, Any], place: str) -> None:
        """Add a part of an episode.

        Args:
            kind: Kind of log.
            scope: Where the name is unique: a file, or empty for all files.
            name: Name of the episode.
            part: What was found.
            place: Where it was found.
        """
        episode = (kind, scope, name)
        self._database.execute(
            "INSERT OR IGNORE INTO episodes (kind, scope, name, place) VALUES (?, ?, ?, ?)", (*episode, place)
        )
        self._database.execute(
            "INSERT INTO parts SELECT number, ? FROM episodes WHERE kind = ? AND scope = ? AND name = ?",
            (json.dumps(part, default=str), *episode),
        )
        self.num_parts += 1

    def episodes(self) -> Iterator[Gathered]:
        """Yield the episodes in the order of their first parts."""
        self._database.execute("CREATE INDEX by_episode ON parts (episode)")
        rows = self._database.execute(
            "SELECT number, kind, name, place, part FROM episodes JOIN parts ON episode = number "
            "ORDER BY number, parts.rowid"
        )
        for (_, kind, name, place), some in groupby(rows, lambda row: row[:4]):
            yield Gathered(kind, name, place, [json.loads(part) for *_, part in some])


@contextmanager
def temporary_parts() -> Iterator[GatheredParts]:
    """Open an empty collection of parts; a large one uses an unnamed file that is removed with the process.

    Raises:
        StorageError: there is no disk space for the parts.
    """
    try:
        with closing(sqlite3.connect("")) as database:
            yield GatheredParts(database)
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"the parts of a log's episodes cannot be gathered: {error}. They take as much room as the log: name a "
            "folder that has it in SQLITE_TMPDIR, and run again"
        ) from error
