"""Runs that are killed or interrupted at any moment: run again, they go on, and end as if nothing had happened."""

import json
import os
import random
import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.command_line import (
    LENIENT_GATE,
    TOY,
    changed,
    digests,
    dreamgym,
    dreamgym_here,
    started_in_a_terminal_of_its_own,
)
from tests.left_processes import processes_on

pytestmark = pytest.mark.e2e

STATEFUL = (
    *("rl.loss.name=ppo", "rl.loss.critic=copy", "rl.advantage.name=critic", "rl.auxiliary.name=observations"),
    *("experience.judge.name=aggregate", "experience.judge.num_situations=16", "experience.judge.num_rounds=1"),
    *("curriculum.method.name=refill", "curriculum.method.max_draws=2"),
    *("dream.consolidate_every=1", "real.consolidate_every=1"),
    *("start.num_demonstrations=12", "start.sft.epochs=4"),
    *("start.early_experience.alternatives=1", "start.early_experience.reflections=true"),
)
"""Options whose state passes from round to round: a critic, a judge, refilled rounds, and wins, of which the start has some."""

FEW = (
    *("environment.num_train_tasks=12", "environment.num_test_tasks=3", "environment.max_steps=12"),
    "rl.groups_per_round=2",
)
"""Changes for short evaluations of a run whose success does not matter."""

KEPT = (
    *("logs", "experience", "alternatives", "world_model", "start"),
    *("experience_model", "wins", "dream", "sim_to_real"),
)
"""Artifacts of a run that are the same however often it was killed."""


def test_killed_anywhere_and_run_again_it_ends_with_the_same_data_and_weights(
    tmp_path_factory, tmp_path, prefect_server
):
    home = tmp_path_factory.mktemp("whole")
    command = ["run", "textworld-tiny", *changed(*TOY, *LENIENT_GATE, *STATEFUL, *FEW), "--json"]
    whole = dreamgym_here(home, *command, PREFECT_API_URL=prefect_server)
    assert whole.returncode == 0, whole.stderr
    summary = json.loads(whole.stdout)
    process = started_in_a_terminal_of_its_own(tmp_path, *command)
    while not flow_run_states(tmp_path):
        assert process.poll() is None
        time.sleep(0.1)
    share = random.uniform(0, 0.6)
    print(f"killed after {share:.0%} of the time")
    time.sleep(share * summary["results"]["seconds"])
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert processes_on(tmp_path) == [], "what it started ends, too: Prefect's server"
    resumed = dreamgym(tmp_path, *command)
    assert resumed.returncode == 0, resumed.stderr
    lineage = json.loads(resumed.stdout)["lineage"]
    for name in KEPT:
        assert digests(lineage[name]) == digests(summary["lineage"][name]), name
    assert losses(tmp_path) == losses(home)
    assert statuses(tmp_path) == {"FINISHED"}
    states = flow_run_states(tmp_path)
    assert sorted(states) == ["COMPLETED", "CRASHED"], "none seems to go on for ever"


def test_ctrl_c_ends_a_run_soon_and_truthfully_and_it_can_go_on(tmp_path, prefect_server):
    process = started_in_a_terminal_of_its_own(tmp_path, "run", "textworld-tiny", *changed(*TOY))
    while not statuses(tmp_path):
        assert process.poll() is None
        time.sleep(0.1)
    time.sleep(random.uniform(0, 15))
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "run the same command again" in said
    assert statuses(tmp_path) == {"KILLED"}
    assert processes_on(tmp_path) == []
    to_ingest = ("run", "textworld-tiny", *changed(*TOY), "--only", "ingest")
    resumed = dreamgym_here(tmp_path, *to_ingest, PREFECT_API_URL=prefect_server)
    assert resumed.returncode == 0, resumed.stderr
    assert "was interrupted: going on" in resumed.stderr.replace("\n", " ")


def statuses(home: Path) -> set[str]:
    """Return the statuses of all MLflow runs so far."""
    with closing(sqlite3.connect(home / "mlflow.db")) as database, suppress(sqlite3.OperationalError):
        return {status for (status,) in database.execute("select status from runs")}
    return set()


def flow_run_states(home: Path) -> list[str]:
    """Return the states of all of Prefect's flow runs so far."""
    (home / "prefect").mkdir(exist_ok=True)
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as database, suppress(sqlite3.OperationalError):
        return [state for (state,) in database.execute("select state_type from flow_run")]
    return []


def losses(home: Path) -> dict[tuple[str, int], float]:
    """Return every loss that MLflow holds, by stage and step."""
    with closing(sqlite3.connect(home / "mlflow.db")) as database:
        rows = database.execute(
            "select runs.name, metrics.step, metrics.value from metrics join runs using (run_uuid) "
            "where metrics.key = 'loss' and runs.name in ('start policy', 'experience model', 'dream training')"
        )
        return {(name, step): value for name, step, value in rows}
