"""Contents of MLflow's own database about a run."""

import sqlite3
from contextlib import closing
from pathlib import Path


def of_the_cycles_own_run(table: str, home: Path, summary: dict) -> dict:
    """Return the metrics or tags that MLflow holds of a run's parent run."""
    with closing(sqlite3.connect(home / "mlflow.db")) as database:
        rows = f"select key, value from {table} join runs using (run_uuid) where name = ?"
        return dict(database.execute(rows, [summary["run_id"]]))
