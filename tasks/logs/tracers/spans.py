"""Group spans by trace in a temporary database: logs may hold them in any order, and more than fit in memory."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import groupby
from typing import Any

from schemas.errors import StorageError

_TABLES = """
PRAGMA journal_mode = OFF;
CREATE TABLE traces (number INTEGER PRIMARY KEY, id TEXT UNIQUE, place TEXT);
CREATE TABLE spans (trace INTEGER, span TEXT);
"""


class SpansByTrace:
    """Spans, added in any order and read trace by trace."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Create the tables; callers use `temporary_spans`.

        Args:
            database: Empty database.
        """
        self._database = database
        database.executescript(_TABLES)

    def add(self, spans: Iterable[tuple[str, dict[str, Any]]], place: str) -> None:
        """Add spans, each with the id of its trace, and the place where they were found."""
        for trace, span in spans:
            self._database.execute("INSERT OR IGNORE INTO traces (id, place) VALUES (?, ?)", (trace, place))
            self._database.execute(
                "INSERT INTO spans SELECT number, ? FROM traces WHERE id = ?", (json.dumps(span, default=str), trace)
            )

    def traces(self) -> Iterator[tuple[str, str, Iterator[dict[str, Any]]]]:
        """Yield the id of each trace, the place where it began and its spans, all in the order in which they came."""
        self._database.execute("CREATE INDEX by_trace ON spans (trace)")
        rows = self._database.execute(
            "SELECT id, place, span FROM traces JOIN spans ON trace = number ORDER BY number, spans.rowid"
        )
        for (trace, place), some in groupby(rows, lambda row: row[:2]):
            yield trace, place, (json.loads(span) for *_, span in some)


@contextmanager
def temporary_spans() -> Iterator[SpansByTrace]:
    """Open an empty collection of spans; a large one uses an unnamed file that is removed with the process.

    Raises:
        StorageError: there is no disk space for the spans.
    """
    try:
        with closing(sqlite3.connect("")) as database:
            yield SpansByTrace(database)
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"the spans of a log cannot be grouped by trace: {error}. They take as much room as the log: name a "
            "folder that has it in SQLITE_TMPDIR, and run again"
        ) from error
