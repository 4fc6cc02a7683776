"""Spans brought together by trace, in a temporary database: in logs they may lie anywhere, and be more than memory holds."""

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
    """Spans as they come, and then trace by trace."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Use `temporary_spans`.

        Args:
            database: An empty one.
        """
        self._database = database
        database.executescript(_TABLES)

    def add(self, spans: Iterable[tuple[str, dict[str, Any]]], place: str) -> None:
        """Take spans, each with the id of its trace, and where they stand."""
        for trace, span in spans:
            self._database.execute("INSERT OR IGNORE INTO traces (id, place) VALUES (?, ?)", (trace, place))
            self._database.execute(
                "INSERT INTO spans SELECT number, ? FROM traces WHERE id = ?", (json.dumps(span, default=str), trace)
            )

    def traces(self) -> Iterator[tuple[str, str, Iterator[dict[str, Any]]]]:
        """Each trace's id, where it began and its spans, in the order in which traces, and spans of each, came."""
        self._database.execute("CREATE INDEX by_trace ON spans (trace)")
        rows = self._database.execute(
            "SELECT id, place, span FROM traces JOIN spans ON trace = number ORDER BY number, spans.rowid"
        )
        for (trace, place), some in groupby(rows, lambda row: row[:2]):
            yield trace, place, (json.loads(span) for *_, span in some)


@contextmanager
def temporary_spans() -> Iterator[SpansByTrace]:
    """None at first; a file without a name, gone with its process, where they are more than a few.

    Raises:
        StorageError: there is no room for them.
    """
    try:
        with closing(sqlite3.connect("")) as database:
            yield SpansByTrace(database)
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"the spans of a log cannot be brought together by trace: {error}. They take as much room as the log: name a "
            "folder that has it in SQLITE_TMPDIR, and run again"
        ) from error
