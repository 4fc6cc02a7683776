"""Replay store: LanceDB tables with idempotent writes and pinned, tagged versions."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

os.environ.setdefault("LANCE_LOG", "error")

import lancedb
import pyarrow as arrow

from infra.settings import Settings
from infra.storage.blobs import blobs_at, open_blobs
from infra.storage.table_checksums import TableChecksums
from infra.storage.table_migration import migrate
from schemas.errors import InputError, IntegrityError, StorageError
from schemas.tables import AGENT_TASKS_SCHEMA, EVALUATIONS_SCHEMA, QUARANTINE_SCHEMA, transitions_schema

_UPSERT_ROWS = 20_000
_NAMES_PER_QUERY = 1_000
_MAX_FRAGMENTS = 48
"""Number of fragments of a table above which they are put together before a write."""
_SCHEMAS = {"quarantine": QUARANTINE_SCHEMA, "agent_tasks": AGENT_TASKS_SCHEMA, "evaluations": EVALUATIONS_SCHEMA}


class ReplayStore:
    """Tables of transitions, agent tasks, evaluations and quarantined rows."""

    def __init__(self, settings: Settings) -> None:
        """Connect to the configured location; tables are created at their first write."""
        self._uri = settings.replay_store_uri
        with _errors_explained(f"open the replay store {self._uri}"):
            self._database = lancedb.connect(self._uri, storage_options=_storage_options(settings))
            migrate(self._database, blobs_at(self._uri, settings), self._uri)
        self._seals = TableChecksums(blobs_at(self._uri, settings), open_blobs(settings))

    def upsert(
        self, table: str, rows: Sequence[Mapping[str, Any]], tag: str = "", *, unless_same: Sequence[str] = ()
    ) -> None:
        """Write rows by their row_id, so that a retry writes nothing twice.

        Args:
            table: transitions, agent_tasks, evaluations or quarantine.
            rows: Rows with the columns of the table's schema.
            tag: Tag that pins and seals the resulting version, of letters, digits, dots, dashes and underscores; an
                existing tag moves to it.
            unless_same: Columns to compare with a stored row of the same id; if they are equal, the stored row stays.
                Without columns it is always replaced.
        """
        if not rows:
            if tag and self.holds(table):
                self.pin(table, tag)
            return
        with _errors_explained(f"write {len(rows)} rows to {self._uri}/{table}, whose other rows are intact"):
            opened = self._open_for(table, _schema_of(table, rows[0]))
            _compact_if_scattered(opened)
            for start in range(0, len(rows), _UPSERT_ROWS):
                batch = arrow.Table.from_pylist(list(rows[start : start + _UPSERT_ROWS]), schema=opened.schema)
                merge = opened.merge_insert("row_id").when_not_matched_insert_all()
                merge.when_matched_update_all(where=_differ_in(unless_same)).execute(batch)
            if tag:
                self._pin(opened, tag)

    def delete(self, table: str, row_ids: Sequence[str]) -> None:
        """Delete rows from the latest version of a table; pinned versions still contain them."""
        with _errors_explained(f"delete {len(row_ids)} rows from {self._uri}/{table}"):
            for start in range(0, len(row_ids), _NAMES_PER_QUERY):
                self._database.open_table(table).delete(
                    f"row_id IN ({_listed(row_ids[start : start + _NAMES_PER_QUERY])})"
                )

    def row_ids_of(self, table: str, trajectory_ids: Sequence[str]) -> list[str]:
        """Return the ids of the stored rows of some trajectories."""
        found: list[str] = []
        for start in range(0, len(trajectory_ids), _NAMES_PER_QUERY):
            where = f"trajectory_id IN ({_listed(trajectory_ids[start : start + _NAMES_PER_QUERY])})"
            found += [row["row_id"] for row in self.read(table, where, ["row_id"])]
        return found

    def pin(self, table: str, tag: str) -> None:
        """Pin and seal the current version of a table under a tag; see upsert."""
        with _errors_explained(f"pin table {table} in {self._uri}"):
            self._pin(self._database.open_table(table), tag)

    def _pin(self, opened: Any, tag: str) -> None:
        """Tag the current version, so that it is never cleaned up, and seal it."""
        try:
            opened.tags.create(tag, opened.version)
        except RuntimeError:  # the tag exists: the task that created it is repeated
            opened.tags.update(tag, opened.version)
        self._seals.seal(opened, tag)

    def read(
        self, table: str, where: str | None = None, columns: Sequence[str] | None = None, as_of: str | int | None = None
    ) -> list[dict[str, Any]]:
        """Return rows of a table, of the latest version or of a tag or version; empty if the table does not exist.

        Args:
            table: Name of the table.
            where: SQL condition on the rows.
            columns: Columns to return, without those that an earlier version does not have; None: all.
            as_of: Tag or version number; None: the latest version.

        Raises:
            InputError: the tag or version does not exist.
        """
        with _errors_explained(f"read table {table} in {self._uri}"):
            if table not in self._names():
                return []
            opened = self._database.open_table(table)
            if as_of is not None:
                _check_out(opened, as_of)
            query = opened.search().limit(max(1, opened.count_rows()))
            if where:
                query = query.where(where)
            if columns:
                query = query.select([name for name in columns if name in opened.schema.names])
            return query.to_arrow().to_pylist()

    def holds(self, table: str) -> bool:
        """Return True if a table exists."""
        with _errors_explained(f"list the tables of {self._uri}"):
            return table in self._names()

    def verify(self, table: str, tags: set[str]) -> None:
        """Compare every byte of pinned versions with the digests that were taken when they were pinned.

        Raises:
            IntegrityError: a file, a seal or a tag was changed.
            StorageError: a file or a seal does not exist.
        """
        if not tags:
            return
        sealed = self._seals.verify(table, tags)
        with _errors_explained(f"read table {table} in {self._uri}"):
            pinned = self._database.open_table(table).tags.list()
        for tag, version in sealed.items():
            if pinned.get(tag, {}).get("version") != version:
                raise IntegrityError(
                    f"tag {tag} of table {table} in {self._uri} does not pin version {version} any more"
                )

    def tidy(self, keep: timedelta, is_kept: Callable[[str], bool]) -> dict[str, int]:
        """Compact every table, drop old tags that need not stay, and clean up old versions that no tag pins.

        Args:
            keep: Age below which versions and their tags stay, as another process may be using them.
            is_kept: Returns True if an old tag stays.

        Returns:
            Number of removed versions by table.
        """
        gone: dict[str, int] = {}
        for name in self._names():
            table = self._database.open_table(name)
            for tag in [tag for tag in _old_tags(table, keep) if not is_kept(tag)]:
                table.tags.delete(tag)
                self._seals.drop(name, tag)
            dataset = table.to_lance()
            dataset.optimize.compact_files()
            gone[name] = dataset.cleanup_old_versions(older_than=keep, error_if_tagged_old_versions=False).old_versions
        return gone

    def _names(self) -> list[str]:
        return list(self._database.list_tables(limit=100).tables)

    def _open_for(self, table: str, expected: arrow.Schema) -> Any:
        try:
            opened = self._database.open_table(table)
        except ValueError:
            if table in self._names():
                raise
            return self._database.create_table(table, schema=expected, exist_ok=True)
        if difference := _difference(opened.schema, expected):
            raise StorageError(f"table {table} in {self._uri} has another schema: {difference}")
        return opened


def _compact_if_scattered(opened: Any) -> None:
    """Put the fragments of a table together once they are many: every write reads them all for the ids in them."""
    dataset = opened.to_lance()
    if len(dataset.get_fragments()) < _MAX_FRAGMENTS:
        return
    with suppress(OSError, RuntimeError, ValueError):  # another process wrote or compacted at the same time
        dataset.optimize.compact_files()
    opened.checkout_latest()


@contextmanager
def _errors_explained(task: str) -> Iterator[None]:
    """Turn LanceDB's errors into StorageError."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        raise StorageError(f"cannot {task}: {error}") from error


def _schema_of(table: str, row: Mapping[str, Any]) -> arrow.Schema:
    return transitions_schema(len(row["vector"])) if table == "transitions" else _SCHEMAS[table]


def _difference(stored: arrow.Schema, expected: arrow.Schema) -> str:
    """Explain why rows of one schema do not fit a table of the other, and the remedy; empty if they fit."""
    if columns := set(stored.names) ^ set(expected.names):
        return f"only one of them has {', '.join(sorted(columns))}. Use another DREAMGYM_HOME for this version"
    if _vector_size(stored) != _vector_size(expected):
        return (
            f"vectors of {_vector_size(stored)} numbers, this recipe makes {_vector_size(expected)}. "
            "Use another DREAMGYM_HOME, or the encoder that made the table"
        )
    return ""


def _vector_size(schema: arrow.Schema) -> int:
    return schema.field("vector").type.list_size if "vector" in schema.names else 0


def _old_tags(opened: Any, keep: timedelta) -> list[str]:
    """Return the tags of versions that are older than `keep`."""
    written = {one["version"]: one["timestamp"] for one in opened.list_versions()}
    oldest = datetime.now() - keep  # LanceDB's times are local, without a zone
    return [tag for tag, pinned in opened.tags.list().items() if written[pinned["version"]] < oldest]


def _check_out(opened: Any, as_of: str | int) -> None:
    try:
        opened.checkout(as_of)
    except (ValueError, RuntimeError, OSError) as error:
        known = ", ".join(sorted(opened.tags.list())[-12:]) or "none"
        raise InputError(
            f"table {opened.name} has no version or tag {as_of!r}; its tags, at most 12 of them: {known}"
        ) from error


def _storage_options(settings: Settings) -> dict[str, str] | None:
    if not settings.replay_store_uri.startswith("s3://"):
        return None
    options = {"allow_http": "true", "client_max_retries": "10"}  # the default of 3 loses writes to a busy store
    if settings.s3_endpoint:
        options["endpoint"] = settings.s3_endpoint
    if settings.s3_access_key and settings.s3_secret_key:
        options["aws_access_key_id"] = settings.s3_access_key.get_secret_value()
        options["aws_secret_access_key"] = settings.s3_secret_key.get_secret_value()
    return options


def _differ_in(columns: Sequence[str]) -> str | None:
    """Return the condition that two rows of the same id differ; None if they always count as different."""
    return " OR ".join(f"target.{one} <> source.{one}" for one in columns) or None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
