"""The replay store: LanceDB tables with idempotent writes and pinned versions."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("LANCE_LOG", "error")

import lancedb
import pyarrow as arrow

from infra.settings import Settings
from schemas.errors import StorageError
from schemas.tables import AGENT_TASKS_SCHEMA, EVALUATIONS_SCHEMA, QUARANTINE_SCHEMA, transitions_schema

_UPSERT_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A pinned state of a table."""

    table: str
    version: int
    num_rows: int


class ReplayStore:
    """Tables of transitions, agent tasks, evaluations and quarantined rows."""

    def __init__(self, settings: Settings, num_dimensions: int) -> None:
        """Connect; tables are made when first written.

        Args:
            settings: Say where.
            num_dimensions: Of the vectors of transitions.
        """
        self._uri = settings.replay_store_uri
        self._schemas = {
            "transitions": transitions_schema(num_dimensions),
            "quarantine": QUARANTINE_SCHEMA,
            "agent_tasks": AGENT_TASKS_SCHEMA,
            "evaluations": EVALUATIONS_SCHEMA,
        }
        try:
            self._database = lancedb.connect(self._uri, storage_options=_storage_options(settings))
        except (OSError, RuntimeError, ValueError) as error:
            raise StorageError(f"cannot open the replay store {self._uri}: {error}") from error

    def upsert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> TableVersion:
        """Write rows by their row_id; a row that is already there is replaced, so a retry writes nothing twice."""
        try:
            opened = self._open(table)
            for start in range(0, len(rows), _UPSERT_ROWS):
                batch = arrow.Table.from_pylist(list(rows[start : start + _UPSERT_ROWS]), schema=self._schemas[table])
                (opened.merge_insert("row_id").when_matched_update_all().when_not_matched_insert_all().execute(batch))
            return TableVersion(table, opened.version, opened.count_rows())
        except (OSError, RuntimeError) as error:
            raise StorageError(
                f"cannot write {len(rows)} rows to {self._uri}/{table}: {error}. Rows stored before are intact"
            ) from error

    def read(
        self, table: str, where: str | None = None, columns: Sequence[str] | None = None, version: int | None = None
    ) -> list[dict[str, Any]]:
        """Rows of a table, of its latest or of a pinned version, in the order of row_id."""
        if table not in self._names():
            return []
        opened = self._open(table)
        if version is not None:
            opened.checkout(version)
        query = opened.search().limit(max(1, opened.count_rows()))
        if where:
            query = query.where(where)
        if columns:
            query = query.select(list(columns))
        return query.to_arrow().to_pylist()

    def _names(self) -> list[str]:
        return list(self._database.list_tables(limit=100).tables)

    def _open(self, table: str) -> Any:
        if table not in self._names():
            return self._database.create_table(table, schema=self._schemas[table], exist_ok=True)
        opened = self._database.open_table(table)
        expected = self._schemas[table]
        if opened.schema.names != expected.names or _vector_size(opened.schema) != _vector_size(expected):
            raise StorageError(
                f"table {table} in {self._uri} has another schema: vectors of {_vector_size(opened.schema)} numbers, "
                f"this recipe makes {_vector_size(expected)}. Use another DREAMGYM_HOME, or the encoder that made the table"
            )
        return opened


def _vector_size(schema: arrow.Schema) -> int:
    return schema.field("vector").type.list_size if "vector" in schema.names else 0


def _storage_options(settings: Settings) -> dict[str, str] | None:
    if not settings.replay_store_uri.startswith("s3://"):
        return None
    options = {"allow_http": "true"}
    if settings.s3_endpoint:
        options["endpoint"] = settings.s3_endpoint
    if settings.s3_access_key and settings.s3_secret_key:
        options["aws_access_key_id"] = settings.s3_access_key.get_secret_value()
        options["aws_secret_access_key"] = settings.s3_secret_key.get_secret_value()
    return options


def open_table_rows(settings: Settings, table: str, where: str | None, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a table as it is stored, without knowing the size of its vectors; empty if it is not there."""
    database = lancedb.connect(settings.replay_store_uri, storage_options=_storage_options(settings))
    if table not in database.list_tables(limit=100).tables:
        return []
    opened = database.open_table(table)
    query = opened.search().select(list(columns)).limit(max(1, opened.count_rows()))
    return (query.where(where) if where else query).to_arrow().to_pylist()
