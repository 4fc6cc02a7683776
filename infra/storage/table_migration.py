"""Migration of tables from earlier schema versions when a store is opened; later versions are refused.

1 -> 2   rows name the run that wrote them; empty for earlier rows. Logged episodes are named by their ids instead of
         their content: their rows are renamed when the logs are ingested again (tasks/data/store_rows.py).
2 -> 3   transitions have the agent's thought; empty for earlier rows.

Versions pinned by tags are not changed.
"""

import json
from typing import Any

from infra.storage.blobs import Blobs
from schemas.errors import StorageError
from schemas.tables import SCHEMA_VERSION

_MARK = "schema-version.json"
_WITHOUT_RUNS = 1
_ROWS_WITHOUT_PROVENANCE = ("quarantine",)


def migrate(database: Any, files: Blobs, uri: str) -> None:
    """Migrate the tables of a store to the present schema.

    Raises:
        StorageError: a later version of dreamgym wrote them.
    """
    names = list(database.list_tables(limit=100).tables)
    version = _version(files, has_tables=bool(names))
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"the replay store {uri} has schema version {version}, and this dreamgym knows {SCHEMA_VERSION}: upgrade "
            "dreamgym, or use another DREAMGYM_HOME. Nothing was changed"
        )
    for name in names if version < SCHEMA_VERSION else ():
        _add_columns(database.open_table(name))
    if version < SCHEMA_VERSION or not files.holds(_MARK):
        files.write(_MARK, json.dumps({"schema_version": SCHEMA_VERSION}).encode())


def _version(files: Blobs, *, has_tables: bool) -> int:
    """Return the schema version of a store; version 1 left no mark."""
    if files.holds(_MARK):
        return int(json.loads(files.read(_MARK))["schema_version"])
    return _WITHOUT_RUNS if has_tables else SCHEMA_VERSION


def _add_columns(table: Any) -> None:
    """Add empty columns unless they exist, so that an interrupted migration can be repeated."""
    if table.name in _ROWS_WITHOUT_PROVENANCE:
        return
    wanted = ("run", "thought") if table.name == "transitions" else ("run",)
    missing = [name for name in wanted if name not in table.schema.names]
    if missing:
        table.add_columns(dict.fromkeys(missing, "''"))
