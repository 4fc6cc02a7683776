"""Tracking in MLflow: one parent MLflow run per run, one nested MLflow run per stage, and a journal underneath.

The journal is a file with one JSON line per logged step, written durably before it is sent to MLflow. After a crash its
lines are sent again with the same timestamps, which MLflow counts once. Sending happens in the background: while MLflow
is away nothing waits for it except `flush`.
"""

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # the outbox tries again itself
os.environ.setdefault("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")  # the outbox is asynchronous itself
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, LifecycleStage, Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INTERNAL_ERROR, TEMPORARILY_UNAVAILABLE, ErrorCode

from infra.running.interrupts import deferred_interrupts
from infra.running.reachable import require_server
from infra.settings import Settings
from infra.tracking.embedded_mlflow import move_artifacts, opened_alone
from infra.tracking.names import EXPERIMENT, tracked_name
from infra.tracking.outbox import Outbox
from infra.tracking.traces import trace_rollout
from schemas.errors import StorageError
from schemas.records import Reference, Trajectory

_EXPERIMENT_TAGS = {
    "mlflow.experimentKind": "custom_model_development",  # the page opens on runs and metrics, not on traces
    "mlflow.note.content": "Runs of DreamGym recipes, each with its stages nested under it. `dreamgym runs` lists them, too.",
}
_PARENT_TAG = "mlflow.parentRunId"
_MAX_METRICS_PER_CALL = 1000
_DIGEST_LENGTH = 16
"""Length of a dataset's digest, as in the run's tags; MLflow takes at most 36 characters."""


class Tracker:
    """MLflow runs of one run: the parent and one per stage."""

    def __init__(self, settings: Settings, run_id: str, tags: Mapping[str, str], *, reopen: bool = True) -> None:
        """Find the run's parent run in MLflow, or start it.

        Args:
            settings: Address of MLflow.
            run_id: Id of this run; a resumed run has the same id.
            tags: Tags of the parent run.
            reopen: True sets existing MLflow runs to RUNNING again; False leaves their status and end as they are,
                whatever is logged to them.

        Raises:
            StorageError: MLflow cannot be used.
        """
        self._reopen = reopen
        settings.home.mkdir(parents=True, exist_ok=True)
        self._journals = settings.home / "journal" / run_id
        self._artifacts = settings.home.absolute() / "artifacts"
        self.run_id = run_id
        require_server("MLflow", settings.tracking, "/health")
        try:
            with opened_alone(settings):
                self.client = MlflowClient(settings.tracking)
                self.experiment_id = self._experiment(settings)
            self.parent = self._run(run_id, {"run_id": run_id, "stage": "cycle", **tags})
        except (MlflowException, OSError, ImportError) as error:
            raise StorageError(f"cannot use MLflow at {settings.tracking_shown}: {error}") from error
        self._outbox = Outbox("MLflow", _may_pass)
        self._stages: dict[str, Stage] = {}
        self._parent_stage = self._open("cycle", lambda: self.parent.info.run_id)

    def _experiment(self, settings: Settings) -> str:
        """Return the id of the experiment: made, brought back if it was deleted, and moved with an embedded database."""
        found = self.client.get_experiment_by_name(EXPERIMENT)
        location = None if settings.tracking_uri.get_secret_value() else self._artifacts.as_uri()
        if found is None:
            return self.client.create_experiment(EXPERIMENT, artifact_location=location, tags=_EXPERIMENT_TAGS)
        if found.lifecycle_stage == LifecycleStage.DELETED:
            self.client.restore_experiment(found.experiment_id)
        if location and found.artifact_location != location:
            move_artifacts(settings, found.artifact_location, location)
        return found.experiment_id

    def _run(self, name: str, tags: dict[str, str]) -> Run:
        query = " and ".join(f"tags.{key} = '{tags[key]}'" for key in ("run_id", "stage"))
        found = self.client.search_runs([self.experiment_id], query, max_results=1)
        if found and not self._reopen:
            return found[0]
        if found:
            self.client.set_tag(found[0].info.run_id, "resumed", "true")
            self.client.update_run(found[0].info.run_id, status="RUNNING")
            return found[0]
        return self.client.create_run(self.experiment_id, run_name=name, tags=tags)

    def stage(self, name: str) -> "Stage":
        """Return the nested MLflow run of a stage such as `dream` or `evaluate start`."""
        if name not in self._stages:
            tags = {"run_id": self.run_id, "stage": name, _PARENT_TAG: self.parent.info.run_id}
            self._stages[name] = self._open(name, lambda: self._run(name, tags).info.run_id)
        return self._stages[name]

    def cycle(self) -> "Stage":
        """Return the parent MLflow run."""
        return self._parent_stage

    def _open(self, name: str, find_run: Callable[[], str]) -> "Stage":
        journal = self._journals / f"{name.replace(' ', '-')}.jsonl"
        return Stage(self.client, self.experiment_id, self._outbox, find_run, journal)

    @property
    def refusals(self) -> list[str]:
        """Errors of entries that MLflow refused."""
        return self._outbox.refusals

    def flush(self, timeout_s: float = 60) -> None:
        """Wait until MLflow has received everything that was logged.

        Raises:
            StorageError: MLflow did not in time; nothing is lost, as the journal has it.
        """
        self._outbox.flush(timeout_s)

    def close(self, status: str) -> None:
        """End all MLflow runs of this run that are still RUNNING with a status.

        Args:
            status: FINISHED, FAILED or KILLED. Only a finished run waits until everything was sent: the journal has
                what others leave unsent.

        Raises:
            StorageError: MLflow did not take the entries of a finished run.
        """
        if status == "FINISHED":
            self.flush()
        else:
            with suppress(StorageError):
                self.flush(5)
        with deferred_interrupts():
            self._outbox.close()
            going_on = f"tags.run_id = '{self.run_id}' and attributes.status = 'RUNNING'"
            for run in self.client.search_runs([self.experiment_id], going_on):
                self.client.set_terminated(run.info.run_id, status)


class Stage:
    """MLflow run with its journal. Everything is sent to MLflow in the background, in order."""

    def __init__(
        self, client: MlflowClient, experiment_id: str, outbox: Outbox, find_run: Callable[[], str], journal: Path
    ) -> None:
        """Open the journal; entries of an earlier process are sent again."""
        self._client, self._experiment_id, self._outbox, self._journal = client, experiment_id, outbox, journal
        self._run_id = cache(find_run)
        journal.parent.mkdir(parents=True, exist_ok=True)
        self._seen: set[tuple[int, str]] = set()
        for entry in _whole_entries(journal) if journal.exists() else ():
            self._seen |= {(entry["step"], name) for name in entry["metrics"]}
            self._ship(entry)

    def log_metrics(self, metrics: Mapping[str, float], step: int = 0) -> None:
        """Log the metrics of a step once; metrics that the journal already has for the step are skipped."""
        if new := {name: value for name, value in metrics.items() if (step, name) not in self._seen}:
            self._write(new, step)

    def log_summary(self, metrics: Mapping[str, float]) -> None:
        """Log summary metrics of the run; the latest values count. MLflow draws bars for metrics with a single step."""
        self._write(metrics, 0)

    def _write(self, metrics: Mapping[str, float], step: int) -> None:
        """Write metrics to the journal, then send them to MLflow."""
        finite = {key: value for key, value in metrics.items() if math.isfinite(value)}
        entry = {"step": step, "time_ms": int(time.time() * 1000), "metrics": finite}
        with self._journal.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._seen |= {(step, name) for name in finite}
        self._ship(entry)

    def _ship(self, entry: dict[str, Any]) -> None:
        given = [
            Metric(tracked_name(key), value, entry["time_ms"], entry["step"]) for key, value in entry["metrics"].items()
        ]
        for start in range(0, len(given), _MAX_METRICS_PER_CALL):
            self._outbox.put(partial(self._send, given[start : start + _MAX_METRICS_PER_CALL]))

    def _send(self, metrics: Sequence[Metric]) -> None:
        self._client.log_batch(self._run_id(), metrics=metrics)

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Log parameters; they never change within a run."""
        given = [Param(tracked_name(key), str(value)[:500]) for key, value in params.items()]
        self._outbox.put(lambda: self._client.log_batch(self._run_id(), params=given))

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags; they may change when a run is resumed."""
        given = [RunTag(key, value) for key, value in tags.items()]
        self._outbox.put(lambda: self._client.log_batch(self._run_id(), tags=given))

    def log_datasets(self, datasets: Mapping[str, Reference]) -> None:
        """Log the input datasets of the run, so that MLflow shows them and finds runs by them."""
        given = [DatasetInput(_dataset(name, reference)) for name, reference in datasets.items()]
        self._outbox.put(lambda: self._client.log_inputs(self._run_id(), given))

    def log_rollouts(self, fetch: Callable[[], Sequence[Trajectory]], step: int = 0) -> None:
        """Log episodes as traces of this MLflow run, once each; `fetch` is called in the background."""
        self._outbox.put(partial(self._trace, cache(fetch), step))

    def _trace(self, fetch: Callable[[], Sequence[Trajectory]], step: int) -> None:
        for number, episode in enumerate(fetch()):
            trace_rollout(self._client, self._experiment_id, self._run_id(), episode, f"{step}/{number}")

    def log_text(self, text: str, name: str) -> None:
        """Attach a small text file."""
        self._outbox.put(lambda: self._client.log_text(self._run_id(), text, name))


def _dataset(name: str, stored: Reference) -> Dataset:
    source = json.dumps({"uri": stored.uri, "sha256": stored.sha256})
    return Dataset(name, stored.sha256[:_DIGEST_LENGTH], stored.kind, source, profile=json.dumps(stored.notes))


def mlflow_is_away(error: BaseException) -> bool:
    """Return True if an error of MLflow's client means an unavailable or overloaded server, not a wrong request."""
    passing = (ErrorCode.Name(INTERNAL_ERROR), ErrorCode.Name(TEMPORARILY_UNAVAILABLE))
    return isinstance(error, MlflowException) and error.error_code in passing


def _may_pass(error: Exception) -> bool:
    """Return True if a failed delivery may succeed when retried."""
    return isinstance(error, OSError) or mlflow_is_away(error)


def _whole_entries(journal: Path) -> list[dict[str, Any]]:
    """Return the complete entries of a journal, and remove a last line that a crash cut off."""
    *whole, cut_off = journal.read_bytes().split(b"\n")
    if cut_off:
        os.truncate(journal, journal.stat().st_size - len(cut_off))
    return [json.loads(line) for line in whole]
