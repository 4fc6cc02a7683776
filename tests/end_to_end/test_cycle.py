"""Command line, end to end, on a small recipe that learns: a whole run, and commands on what it stored."""

import json
import os
import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import pytest
from mlflow import MlflowClient

from infra.settings import Settings
from infra.storage.blobs import FolderBlobs
from infra.storage.object_store import ObjectStore
from infra.storage.replay_store import ReplayStore
from schemas.records import Reference
from schemas.tables import SCHEMA_VERSION
from tests.command_line import changed, digests, dreamgym, dreamgym_here, started_in_a_terminal_of_its_own
from tests.free_ports import free_ports
from tests.tracked import of_the_cycles_own_run

pytestmark = pytest.mark.e2e

SMALL = [
    "environment.num_train_tasks=60",
    "environment.num_valid_tasks=16",
    "environment.num_test_tasks=48",
    "ingest.episodes_per_task=3",
    "experience.num_on_policy_episodes=20",
    "dream.num_rounds=4",
    "dream.calibrate_every=4",
    "dream.consolidate_every=0",  # RL alone must learn
    "rl.groups_per_round=16",
    "real.num_rounds=1",
    "evaluation.panel=pinned",
    "evaluation.num_shards=1",
    "gate.margin=0.1",
]


def small(*more: str) -> list[str]:
    return changed(*SMALL, *more)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, dict]:
    home = tmp_path_factory.mktemp("home")
    done = dreamgym(home, "run", "textworld-tiny", *small(), "--json")
    assert done.returncode == 0, done.stderr
    return home, json.loads(done.stdout)


def test_a_cycle_proves_what_it_claims(finished):
    _, summary = finished
    results = summary["results"]
    for policy in ("start", "dream", "sim_to_real"):
        low, high = results[policy]["interval"]
        assert 0 <= low <= results[policy]["real_success"] <= high <= 1
    assert results["start"]["real_interactions"] == results["dream"]["real_interactions"] == 0
    assert results["sim_to_real"]["real_interactions"] > 0
    assert results["dream"]["real_success"] > results["start"]["real_success"] + 0.1, "it must learn in the dream"
    assert results["outcome_agreement"] >= 0.9
    assert summary["gate"]["passed"]
    page = Path(summary["report"]).read_text()
    assert "by training in the dream" in page
    assert "for real</b>" in page, "dreams are shown beside their replays"
    assert len(page) < 300_000
    assert "http" not in page


def test_mlflow_holds_the_headline_on_the_cycles_own_run(finished):
    home, summary = finished
    held = of_the_cycles_own_run("latest_metrics", home, summary)
    for policy in ("start", "dream", "sim_to_real"):
        assert held[f"{policy}_real_success"] == summary["results"][policy]["real_success"]


def test_mlflow_says_what_the_cycle_was_made_of(finished):
    home, summary = finished
    tags = of_the_cycles_own_run("tags", home, summary)
    assert tags["recipe_digest"] == summary["recipe_digest"]
    assert digests(summary["lineage"]["logs"])[0].startswith(tags["lineage.logs"])
    assert len(tags["lock_digest"]) == 64
    client = MlflowClient(f"sqlite:///{home / 'mlflow.db'}")
    (run,) = client.search_runs(["1"], f"dataset.digest = '{tags['lineage.logs']}' and tags.stage = 'cycle'")
    assert [one.dataset.name for one in run.inputs.dataset_inputs].count("logs") == 1
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as database:
        (name,) = database.execute("select name from flow_run where id = ?", [tags["prefect_flow_run"]]).fetchone()
    assert name == summary["run_id"]


def test_every_stored_row_says_what_made_it(finished):
    home, summary = finished
    store, lineage = ReplayStore(Settings(home=home)), summary["lineage"]
    rows = {table: store.read(table) for table in ("transitions", "agent_tasks", "evaluations")}
    for row in (row for of_table in rows.values() for row in of_table):
        assert (row["recipe"], row["seed"], row["schema_version"]) == (summary["recipe_digest"], 0, SCHEMA_VERSION)
    assert {row["experience_model"] for row in rows["evaluations"]} == set(digests(lineage["experience_model"]))
    assert {digest for name in ("start", "dream", "sim_to_real") for digest in digests(lineage[name])} <= {
        row["policy"] for row in rows["evaluations"]
    }
    assert {row["round"] for row in rows["evaluations"]} == {0, 1, 4}, "1 is the round for real"
    assert {row["run"] for row in rows["evaluations"]} == {summary["run_id"]}
    assert {row["round"] for row in rows["agent_tasks"]} == {0, 1, 2, 3}


@pytest.mark.usefixtures("shared_prefect")
def test_run_again_finds_nothing_new_and_leaves_no_entry(finished):
    home, summary = finished
    again = dreamgym_here(home, "run", "textworld-tiny", *small(), "--json")
    assert again.returncode == 0, again.stderr
    assert f"nothing is new since run {summary['run_id']}" in again.stderr.replace("\n", " ")
    told = json.loads(again.stdout)
    assert told["lineage"] == summary["lineage"]
    assert len(json.loads(dreamgym_here(home, "runs", "--json").stdout)) == 1


@pytest.mark.usefixtures("shared_prefect")
def test_a_shorter_run_of_the_same_takes_nothing_away(finished):
    home, summary = finished
    short = dreamgym_here(home, "run", "textworld-tiny", *small(), "--only", "experience", "--json")
    assert short.returncode == 0, short.stderr
    assert "nothing is new" in short.stderr
    assert json.loads(dreamgym_here(home, "show", "--json").stdout)["lineage"] == summary["lineage"]


def test_show_compare_promote_and_trajectories_read_what_was_stored(finished):
    home, summary = finished
    shown = json.loads(dreamgym_here(home, "show", "--json").stdout)
    timeless = {"seconds": 0, "overhead_share": 0}
    assert shown["results"] | timeless == summary["results"] | timeless
    assert shown["stage_tokens"] == summary["stage_tokens"]
    checked = json.loads(dreamgym_here(home, "check", "textworld-tiny", *small(), "--json").stdout)
    assert checked["seconds_last_time"] == shown["results"]["seconds"]
    assert checked["plan"]["dreamt_episodes"] == 4 * 16 * 8
    cycle = summary["run_id"]
    assert dreamgym_here(home, "compare", cycle, cycle).returncode == 0
    assert f"dreamgym export {cycle} ./my-agent" in dreamgym_here(home, "show").stdout
    assert dreamgym_here(home, "export", "champion", str(home / "my-agent")).returncode == 0
    assert (home / "my-agent" / "model.safetensors").exists()
    promoted = dreamgym_here(home, "promote", cycle)
    assert "is champion already" in promoted.stdout
    back = dreamgym_here(home, "rollback", "--reason", "to see it come back", "--yes")
    assert "no champion any more" in back.stdout
    assert dreamgym_here(home, "promote", cycle).returncode == 3, "it was rolled back"
    assert "champion is now version" in dreamgym_here(home, "promote", cycle, "--again").stdout
    decisions = [row["decision"] for row in json.loads(dreamgym_here(home, "history", "--json").stdout)]
    assert decisions[:2] == ["judged", "promoted"]
    assert decisions[-2:] == ["rolled back", "promoted"]
    dreamt = json.loads(dreamgym_here(home, "trajectories", "--origin", "dream", "--limit", "2", "--json").stdout)
    assert len(dreamt) == 2
    for episode in dreamt:
        assert all(turn["real_reward"] is None for turn in episode["turns"])


def test_nobody_is_judged_on_rows_that_were_damaged(finished):
    home, summary = finished
    tables = Path(Settings(home=home).replay_store_uri)
    file = max(tables.glob("transitions.lance/data/*"), key=lambda path: path.stat().st_size)
    intact = file.read_bytes()
    file.write_bytes(bytes([intact[0] ^ 1]) + intact[1:])
    refused = dreamgym_here(home, "promote", summary["run_id"])
    file.write_bytes(intact)
    assert refused.returncode == 1
    assert f"{file.name} in {tables} is corrupt" in refused.stderr.replace("\n", "")


@pytest.mark.usefixtures("shared_prefect")
def test_a_recipe_that_differs_only_at_the_gate_computes_nothing_again(finished):
    home, summary = finished
    done = dreamgym_here(home, "run", "textworld-tiny", *small("gate.family_margin=0.2"), "--json")
    assert done.returncode == 0, done.stderr
    other = json.loads(done.stdout)
    assert other["stage_tokens"] == {}
    assert other["lineage"] | {"measured": None} == summary["lineage"] | {"measured": None}
    with closing(sqlite3.connect(home / "mlflow.db")) as database:
        query = "select value from metrics join runs using (run_uuid) where key = 'loss' and step = 0 and name = ?"
        first, second = database.execute(query, ["dream training"])
    assert first == second, "its MLflow runs tell the whole story all the same"
    compared = json.loads(dreamgym_here(home, "compare", summary["run_id"], other["run_id"], "--json").stdout)
    assert compared["recipe_differences"] == {"gate.family_margin": [0.05, 0.2]}


@pytest.mark.usefixtures("shared_prefect")
def test_a_policy_that_was_removed_to_save_space_is_made_again_where_another_run_asks_for_it(finished):
    home, summary = finished
    rounds = trained_in(home, summary["run_id"])[:4]
    objects = ObjectStore(FolderBlobs(home / "objects"))
    of_rounds = [Reference("", digest, "model", {}) for digest in rounds]
    assert [objects.holds(policy) for policy in of_rounds[:-1]] == [False, False, False]
    assert objects.holds(of_rounds[-1]), "it was measured on valid tasks, and training for real goes on from it"
    assert all(objects.holds(policy, or_removed=True) for policy in of_rounds)
    # after two rounds, the second policy is measured
    done = dreamgym_here(home, "run", "textworld-tiny", *small("dream.num_rounds=2"), "--only", "dream", "--json")
    assert done.returncode == 0, done.stderr
    assert "removed" in done.stderr
    assert "made again" in done.stderr
    assert trained_in(home, json.loads(done.stdout)["run_id"]) == rounds[:2]


def trained_in(home: Path, run_id: str) -> list[str]:
    """Return digests of the policies of a run's rounds."""
    steps = json.loads((home / "objects" / "run-steps" / f"{run_id}.json").read_text())["steps"]
    return [step["made"][0] for step in steps if step["task"] == "train_policy"]


@pytest.mark.usefixtures("shared_prefect")
def test_a_gate_that_says_no_exits_with_3(finished):
    home, _ = finished
    refused = dreamgym_here(
        home,
        "run",
        "textworld-tiny",
        *small("dream.num_rounds=0", "gate.margin=0"),
        "--json",
    )
    assert refused.returncode == 3, refused.stderr
    summary = json.loads(refused.stdout)
    assert "is not above" in summary["gate"]["reasons"][0], "a start is no better than itself"
    assert summary["gate"]["over_champion"]["gain"]["mean"] < 0, (
        "the first cycle's policy is champion and was played, too"
    )
    assert summary["results"]["champion"]["real_success"] > summary["results"]["dream"]["real_success"]


@pytest.mark.parametrize(("signal_sent", "code"), [(signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_the_pages_of_what_is_stored_come_up_and_leave_nothing_however_they_end(finished, signal_sent, code):
    home, _ = finished
    ports = free_ports(2)
    process = started_in_a_terminal_of_its_own(
        home, "ui", "--mlflow-port", str(ports[0]), "--prefect-port", str(ports[1])
    )
    try:
        assert "dreamgym" in answer(
            f"http://127.0.0.1:{ports[0]}/api/2.0/mlflow/experiments/get-by-name?experiment_name=dreamgym"
        )
        assert answer(f"http://127.0.0.1:{ports[1]}/api/health") == "true"
    finally:
        servers = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal_sent)
        process.communicate(timeout=60)
    assert process.returncode == code
    assert len(servers) > 2
    assert not psutil.wait_procs(servers, timeout=60)[1]
    with pytest.raises(URLError):
        urlopen(f"http://127.0.0.1:{ports[0]}", timeout=5)


def answer(url: str) -> str:
    """Return what a server answers, once it is there."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        with suppress(URLError, ConnectionError, TimeoutError), urlopen(url, timeout=10) as page:
            return page.read().decode()
        time.sleep(0.2)
    raise AssertionError(f"{url} did not answer")
