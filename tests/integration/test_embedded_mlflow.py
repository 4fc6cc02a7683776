"""MLflow's database of a home: made by one of several processes, moved with its home, and brought back."""

import multiprocessing
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from infra.settings import Settings
from infra.tracking.embedded_mlflow import mended_by_the_next_run
from infra.tracking.names import tracked_name
from infra.tracking.tracker import EXPERIMENT, Tracker
from schemas.errors import StorageError

pytestmark = pytest.mark.integration


def run(home: Path, name: str = "r-1", **metrics: float) -> MlflowClient:
    """Track a whole run, and return a client of its home."""
    tracker = Tracker(Settings(home=home), name, {})
    tracker.cycle().log_metrics(metrics or {"success": 0.5})
    tracker.cycle().log_text("all is well", "report.txt")
    tracker.close("FINISHED")
    return tracker.client


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("made") / "home"
    run(home)
    return home


@pytest.fixture
def home(made, tmp_path) -> Path:
    """Return a home with one run."""
    return shutil.copytree(made, tmp_path / "home")


KILLED_WHILE_IT_WRITES = """
import os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 1")  # changed pages are written before the transaction ends
database.execute("BEGIN")
database.execute("CREATE TABLE half AS SELECT hex(randomblob(100000)) AS written")
database.execute("UPDATE runs SET name = 'half'")
os.kill(os.getpid(), signal.SIGKILL)
"""


def start(home: Path, number: int, barrier) -> None:
    barrier.wait()
    run(home, f"r-{number}")


def test_three_processes_may_begin_in_a_fresh_home_at_once(tmp_path):
    processes = multiprocessing.get_context("spawn")
    barrier = processes.Barrier(3)
    started = [processes.Process(target=start, args=(tmp_path, number, barrier)) for number in range(3)]
    for one in started:
        one.start()
    for one in started:
        one.join(300)
    assert [one.exitcode for one in started] == [0, 0, 0]
    assert len(MlflowClient(Settings(home=tmp_path).tracking).search_runs(["1"])) == 3


def test_a_home_that_was_moved_keeps_its_artifacts_and_writes_none_where_it_was(home):
    home.rename(home.with_name("moved"))
    home.touch()  # nothing can be made beneath a file
    client = run(home.with_name("moved"), "r-2")
    experiment = client.get_experiment_by_name(EXPERIMENT)
    assert experiment is not None
    assert experiment.artifact_location == (home.with_name("moved") / "artifacts").as_uri()
    runs = client.search_runs([experiment.experiment_id])
    assert len(runs) == 2
    for one in runs:
        assert one.info.artifact_uri.startswith(experiment.artifact_location)
        assert [file.path for file in client.list_artifacts(one.info.run_id)] == ["report.txt"]


def test_what_a_killed_process_wrote_by_half_is_undone_by_the_next_that_looks(home):
    file = home / "mlflow.db"
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_IT_WRITES, str(file)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (home / "mlflow.db-journal").stat().st_size
    assert "was moved with its home" in mended_by_the_next_run(Settings(home=home))
    client = run(home, "r-2")
    assert {one.info.run_name for one in client.search_runs(["1"])} >= {"r-1", "r-2"}


def test_an_experiment_that_was_deleted_in_the_page_is_brought_back(home):
    client = MlflowClient(Settings(home=home).tracking)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    assert experiment is not None
    client.delete_experiment(experiment.experiment_id)
    assert "as deleted: the next run brings it back" in mended_by_the_next_run(Settings(home=home))
    run(home, "r-2")
    assert mended_by_the_next_run(Settings(home=home)) == ""
    assert len(client.search_runs([experiment.experiment_id])) == 2


def test_a_file_that_is_no_database_is_named_and_an_empty_one_is_filled(tmp_path):
    file = tmp_path / "mlflow.db"
    file.write_bytes(b"no database " * 999)
    with pytest.raises(StorageError, match=r"mlflow\.db: file is not a database"):
        mended_by_the_next_run(Settings(home=tmp_path))
    with pytest.raises(StorageError, match="move it away"):
        run(tmp_path)
    file.write_bytes(b"")
    assert mended_by_the_next_run(Settings(home=tmp_path)) == ""
    run(tmp_path)


NAMES = {
    "family/cook & cut (easy)": "family/cook _26_ cut _28_easy_29_",
    "family/größer": "family/größer",
    "a//b": "a_2f__2f_b",
    "../up": "_2e__2e__2f_up",
}


def test_names_that_mlflow_refuses_are_written_as_it_takes_them(home):
    assert {name: tracked_name(name) for name in NAMES} == NAMES
    client = run(home, "r-2", **{**dict.fromkeys(NAMES, 1.0), "x" * 300: 1.0, "y" * 300: 2.0})
    found, _ = client.search_runs(["1"])  # the latest first
    assert {*NAMES.values()} <= found.data.metrics.keys()
    assert len([name for name in found.data.metrics if name.startswith(("xx", "yy"))]) == 2


def test_more_metrics_than_mlflow_takes_at_once_are_all_logged(home):
    client = run(home, "r-2", **{f"m{number}": float(number) for number in range(1500)})
    found, _ = client.search_runs(["1"])
    assert len(found.data.metrics) == 1500


def test_a_run_whose_entry_is_refused_goes_on_and_ends_as_finished(home):
    tracker = Tracker(Settings(home=home), "r-2", {})
    tracker.cycle().log_params({"seed": 0})
    tracker.cycle().log_params({"seed": 1})  # a parameter never changes
    tracker.cycle().log_metrics({"success": 1.0})
    tracker.close("FINISHED")
    assert ["Changing param values" in one for one in tracker.refusals] == [True]
    found = tracker.client.get_run(tracker.parent.info.run_id)
    assert (found.info.status, found.data.metrics, found.data.params) == ("FINISHED", {"success": 1.0}, {"seed": "0"})
