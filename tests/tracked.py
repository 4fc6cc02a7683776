"""What MLflow's own database holds of a cycle."""

import sqlite3
from contextlib import closing
from pathlib import Path


def of_the_cycles_own_run(table: str, home: Path, summary: dict) -> dict:
    """Metrics or tags that MLflow holds of the cycle's parent run."""
    with closing(sqlite3.connect(home / "mlflow.db")) as database:
        rows = f"select key, value from {table} join runs using (run_uuid) where name = ?"
        return dict(database.execute(rows, [summary["run_id"]]))
