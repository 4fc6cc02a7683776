"""MLflow's embedded database in a home: one process at a time makes it, and it moves with its home."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from filelock import FileLock

from infra.settings import Settings
from infra.tracking.names import EXPERIMENT

_PLACES = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "storage_location"),
    ("trace_tags", "value"),
)
"""Columns in which MLflow keeps absolute addresses of artifacts."""


@contextmanager
def opened_alone(settings: Settings) -> Iterator[None]:
    """Let one process at a time open an embedded database: MLflow makes its tables when it is opened first.

    A server has its own database, and nobody waits.
    """
    if settings.tracking_uri.get_secret_value():
        yield
        return
    with FileLock(settings.home.absolute() / ".mlflow.lock"):
        yield


def num_left_behind(settings: Settings) -> int:
    """Return the number of experiments whose artifacts are looked for where the home was before it moved."""
    file, place = settings.home.absolute() / "mlflow.db", (settings.home.absolute() / "artifacts").as_uri()
    if not file.exists():
        return 0
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=60)) as database:
        query = "SELECT count(*) FROM experiments WHERE name = ? AND artifact_location <> ?"
        return database.execute(query, (EXPERIMENT, place)).fetchone()[0]


def move_artifacts(settings: Settings, old: str, new: str) -> None:
    """Change the beginnings of all addresses of artifacts, after a home was moved.

    Args:
        settings: Home with the embedded database.
        old: Address of the artifacts where the home was.
        new: Their address now.
    """
    with closing(sqlite3.connect(settings.home.absolute() / "mlflow.db", timeout=60)) as database, database:
        for table, column in _PLACES:
            database.execute(
                f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",  # noqa: S608
                (new, len(old) + 1, len(old), old),
            )
