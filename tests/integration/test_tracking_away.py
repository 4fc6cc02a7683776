"""An MLflow server that goes away and comes back: training does not wait for it, and nothing is lost."""

import time

import pytest
from mlflow.exceptions import MlflowException

from infra.settings import Settings
from infra.tracking.tracker import Tracker, mlflow_is_away
from schemas.errors import StorageError
from tests.free_ports import free_port
from tests.integration.test_traces import episode, traces_of
from tests.integration.tracking_server import mlflow_server

pytestmark = pytest.mark.integration


@pytest.fixture
def port():
    return free_port()


def test_training_goes_on_without_mlflow_and_everything_arrives_once(tmp_path, port):
    settings = Settings(home=tmp_path, tracking_uri=f"http://127.0.0.1:{port}")
    with mlflow_server(tmp_path, port):
        tracker = Tracker(settings, "cycle-1", {})
        tracker.stage("dream").log_metrics({"loss": 0.0}, step=0)
        tracker.flush()
    began = time.monotonic()
    for step in range(1, 40):
        tracker.stage("dream").log_metrics({"loss": float(step)}, step=step)
    tracker.stage("evaluate").log_metrics({"success": 0.5})
    tracker.stage("dream").log_rollouts(lambda: [episode("t/1")])
    assert time.monotonic() - began < 30, "nobody waits for a server that is away"
    with pytest.raises(StorageError, match=r"has not taken 41 entries.*in the journal"):
        tracker.flush(timeout_s=1)
    with mlflow_server(tmp_path, port):
        tracker.flush()
        again = Tracker(settings, "cycle-1", {})
        again.stage("dream").log_metrics({"loss": -1.0}, step=7)
        again.flush()
        history = again.client.get_metric_history(again.stage("dream")._run_id(), "loss")
        assert [(one.step, one.value) for one in sorted(history, key=lambda m: m.step)] == [
            (step, float(step)) for step in range(40)
        ]
        assert [one.info.tags["task_id"] for one in traces_of(again, "dream")] == ["t/1"]
        again.close("FINISHED")
        runs = again.client.search_runs([again.experiment_id])
    assert {run.data.tags["stage"]: run.info.status for run in runs} == dict.fromkeys(
        ("cycle", "dream", "evaluate"), "FINISHED"
    )


def test_a_server_that_is_away_is_told_from_a_wrong_question(tmp_path, port):
    with mlflow_server(tmp_path, port):
        tracker = Tracker(Settings(home=tmp_path, tracking_uri=f"http://127.0.0.1:{port}"), "cycle-1", {})
        with pytest.raises(MlflowException) as wrong:
            tracker.client.get_run("0" * 32)
        assert not mlflow_is_away(wrong.value)
    with pytest.raises(MlflowException) as away:
        tracker.client.get_run(tracker.parent.info.run_id)
    assert mlflow_is_away(away.value)


def test_of_a_summary_the_latest_counts(tmp_path):
    for seconds in (10.0, 20.0):
        tracker = Tracker(Settings(home=tmp_path), "cycle-1", {})
        tracker.cycle().log_summary({"seconds": seconds})
        tracker.flush()
    run = tracker.client.get_run(tracker.parent.info.run_id)
    assert run.data.metrics == {"seconds": 20.0}
    history = tracker.client.get_metric_history(run.info.run_id, "seconds")
    assert [(one.step, one.value) for one in history] == [(0, 10.0), (0, 20.0)]


def test_a_server_that_is_not_there_is_named_at_once(tmp_path, port):
    began = time.monotonic()
    with pytest.raises(StorageError, match=rf"MLflow at http://127\.0\.0\.1:{port} does not answer"):
        Tracker(Settings(home=tmp_path, tracking_uri=f"http://me:hush@127.0.0.1:{port}"), "cycle-1", {})
    assert time.monotonic() - began < 60
