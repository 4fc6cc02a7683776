"""Tracking in MLflow: one parent run per cycle, one nested run per stage, and a journal underneath.

The journal is a file of one JSON line per logged step, written durably before MLflow hears of it. After
a crash its lines are shipped again with the same timestamps, which MLflow counts once.
"""

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException

from infra.reachable import require_server
from infra.settings import Settings
from schemas.errors import StorageError

EXPERIMENT = "dreamgym"
_PARENT_TAG = "mlflow.parentRunId"
_MAX_METRICS_PER_CALL = 1000


class Tracker:
    """Runs of one cycle."""

    def __init__(self, settings: Settings, cycle_id: str, tags: Mapping[str, str]) -> None:
        """Find the cycle's parent run or start it.

        Args:
            settings: Say where MLflow is.
            cycle_id: Of this cycle; a cycle that is resumed has the same.
            tags: Of the parent run.
        """
        settings.home.mkdir(parents=True, exist_ok=True)
        self._journals = settings.home / "journal" / cycle_id
        self._artifacts = settings.home.absolute() / "artifacts"
        self.cycle_id = cycle_id
        require_server("MLflow", settings.tracking, "/health")
        try:
            self.client = MlflowClient(settings.tracking)
            self.experiment_id = self._experiment(settings)
            self.resumed = False
            self.parent = self._run(cycle_id, {"cycle_id": cycle_id, "stage": "cycle", **tags})
        except (MlflowException, OSError, ImportError) as error:
            raise StorageError(f"cannot use MLflow at {settings.tracking_shown}: {error}") from error
        self._stages: dict[str, Stage] = {}

    def _experiment(self, settings: Settings) -> str:
        found = self.client.get_experiment_by_name(EXPERIMENT)
        if found is not None:
            return found.experiment_id
        location = None if settings.tracking_uri.get_secret_value() else self._artifacts.as_uri()
        return self.client.create_experiment(EXPERIMENT, artifact_location=location)

    def _run(self, name: str, tags: dict[str, str]) -> Run:
        query = " and ".join(f"tags.{key} = '{tags[key]}'" for key in ("cycle_id", "stage"))
        found = self.client.search_runs([self.experiment_id], query, max_results=1)
        if found:
            self.resumed = True
            self.client.set_tag(found[0].info.run_id, "resumed", "true")
            self.client.update_run(found[0].info.run_id, status="RUNNING")
            return found[0]
        return self.client.create_run(self.experiment_id, run_name=name, tags=tags)

    def stage(self, name: str) -> "Stage":
        """The nested run of a stage, such as `dream` or `evaluate start`."""
        if name not in self._stages:
            tags = {"cycle_id": self.cycle_id, "stage": name, _PARENT_TAG: self.parent.info.run_id}
            run = self._run(name, tags)
            self._stages[name] = Stage(self.client, run.info.run_id, self._journals / f"{name.replace(' ', '-')}.jsonl")
        return self._stages[name]

    def cycle(self) -> "Stage":
        """The parent run itself."""
        return Stage(self.client, self.parent.info.run_id, self._journals / "cycle.jsonl")

    def close(self, status: str) -> None:
        """End all runs of the cycle truthfully: FINISHED, FAILED or KILLED."""
        for stage in self._stages.values():
            self.client.set_terminated(stage.run_id, status)
        self.client.set_terminated(self.parent.info.run_id, status)


class Stage:
    """One MLflow run with its journal."""

    def __init__(self, client: MlflowClient, run_id: str, journal: Path) -> None:
        """Open the journal; what an earlier process wrote into it is shipped again."""
        self.client, self.run_id, self._journal = client, run_id, journal
        journal.parent.mkdir(parents=True, exist_ok=True)
        self._seen: set[int] = set()
        if journal.exists():
            entries = _whole_entries(journal)
            self._seen = {entry["step"] for entry in entries}
            for entry in entries:
                self._ship(entry)

    def log_metrics(self, metrics: Mapping[str, float], step: int = 0) -> None:
        """Log the metrics of one step, once: a step that is in the journal is not logged again."""
        if step in self._seen:
            return
        finite = {key: value for key, value in metrics.items() if math.isfinite(value)}
        entry = {"step": step, "time_ms": int(time.time() * 1000), "metrics": finite}
        with self._journal.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._seen.add(step)
        self._ship(entry)

    def _ship(self, entry: dict[str, Any]) -> None:
        metrics = [Metric(key, value, entry["time_ms"], entry["step"]) for key, value in entry["metrics"].items()]
        self.client.log_batch(self.run_id, metrics=metrics[:_MAX_METRICS_PER_CALL])

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Log parameters; they never change within a run."""
        self.client.log_batch(self.run_id, params=[Param(key, str(value)[:500]) for key, value in params.items()])

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags; they may change when a run is resumed."""
        self.client.log_batch(self.run_id, tags=[RunTag(key, value) for key, value in tags.items()])

    def log_artifact(self, path: Path) -> None:
        """Attach a small file."""
        self.client.log_artifact(self.run_id, str(path))


def _whole_entries(journal: Path) -> list[dict[str, Any]]:
    """Entries of a journal; a last line that a crash cut off is taken away, so that the next one starts afresh."""
    *whole, cut_off = journal.read_bytes().split(b"\n")
    if cut_off:
        os.truncate(journal, journal.stat().st_size - len(cut_off))
    return [json.loads(line) for line in whole]
