"""MLflow's embedded database in a home: one process at a time makes it, and it moves with its home."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from filelock import FileLock

from infra.settings import Settings
from infra.tracking.names import EXPERIMENT
from schemas.errors import StorageError

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

    Raises:
        StorageError: the file is no database.
    """
    if settings.tracking_uri.get_secret_value():
        yield
        return
    with FileLock(settings.home.absolute() / ".mlflow.lock"):
        _experiment(settings)
        yield


def mended_by_the_next_run(settings: Settings) -> str:
    """Return what the next run mends in an embedded database, as a clause; empty if it is as a run left it.

    Raises:
        StorageError: the file is no database.
    """
    place, stage = _experiment(settings) or (_place(settings), "active")
    if stage != "active":
        return f"has the experiment {EXPERIMENT} as deleted: the next run brings it back"
    if place != _place(settings):
        return "was moved with its home: the next run moves the addresses of its artifacts"
    return ""


def _place(settings: Settings) -> str:
    return (settings.home.absolute() / "artifacts").as_uri()


def _experiment(settings: Settings) -> tuple[str, str] | None:
    """Return where the experiment's artifacts are looked for, and its stage of life; None before the first run."""
    file = settings.home.absolute() / "mlflow.db"
    if not file.exists() or not file.stat().st_size:
        return None
    try:
        # Writable, though it only reads: whoever looks first undoes what a killed process wrote by half.
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=60)) as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'experiments'").fetchone():
                return None
            query = "SELECT artifact_location, lifecycle_stage FROM experiments WHERE name = ?"
            return database.execute(query, (EXPERIMENT,)).fetchone()
    except sqlite3.Error as error:
        raise StorageError(
            f"MLflow cannot use {file}: {error}. If it is none of its databases, move it away, and a run makes another"
        ) from error


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
