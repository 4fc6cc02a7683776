"""Comparison of a disturbed run on the server stack with the same run undisturbed on another home."""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import IO, Any

from infra.settings import Settings
from infra.stack.layout import Layout
from infra.storage.blobs import Blobs, open_blobs
from infra.storage.replay_store import ReplayStore
from tests.command_line import COMMAND, LENIENT_GATE, TOY, changed, dreamgym, environment
from tests.faults.outcome import Outcome
from tests.integration.stack_home import running_stack

Disturbance = Callable[[Layout, int, int, Random, Outcome], None]
"""Function that runs the recipe with a seed on a stack and disturbs it.

It returns once the given number of tries is used up in all, or the run has ended.
"""

_TABLES = ("transitions", "agent_tasks", "evaluations")


def cycle(seed: int) -> list[str]:
    """Return the arguments of a run that takes less than a minute and promotes nobody; another seed is another run."""
    return ["run", "textworld-tiny", *changed(*TOY, *LENIENT_GATE, "gate.needs_approval=true", f"seed={seed}")]


def disturbed(outcome: Outcome, num_tries: int, seed: int, disturb: Disturbance) -> Outcome:
    """Disturb runs from this seed on until `num_tries` are used up, and compare each with an undisturbed one."""
    rng = Random(0)
    with running_stack() as layout:
        while outcome.num_tries < num_tries:
            disturb(layout, seed, num_tries, rng, outcome)
            outcome.broken += differences(layout, seed)
            seed += 1
    return outcome


def begun(layout: Layout, seed: int, told: IO[str] | int) -> subprocess.Popen[bytes]:
    """Start a process that works on the run of a seed, in its own process group, with stderr sent to the given file.

    It has imported everything and holds the run's lease, so that what happens to it now happens to its work.
    """
    blobs = open_blobs(settings_of(layout))
    num_leases = _num_leases(blobs)
    process = subprocess.Popen(
        [COMMAND, *cycle(seed)],
        env=environment(layout.home),
        stdout=subprocess.DEVNULL,
        stderr=told,
        start_new_session=True,
    )
    while process.poll() is None and _num_leases(blobs) == num_leases:
        time.sleep(0.1)
    return process


def _num_leases(blobs: Blobs) -> int:
    """Return how many leases have been taken so far."""
    return sum(key.endswith(".json") for key in blobs.keys("leases/"))


def differences(layout: Layout, seed: int) -> list[str]:
    """Return how the data, weights and rows of a disturbed run differ from those of an undisturbed one."""
    disturbed = _summary(layout.home, seed)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        quiet = _summary(Path(folder), seed)
        wanted = _row_ids(Settings(home=Path(folder)), quiet["run_id"])
    found = _row_ids(settings_of(layout), disturbed["run_id"])
    changes = [f"{name} differs" for name in quiet["lineage"] if _digests(quiet, name) != _digests(disturbed, name)]
    twice = [f"rows of {table} are there twice" for table in _TABLES if len(found[table]) != len(set(found[table]))]
    lost = {table: set(wanted[table]) - set(found[table]) for table in _TABLES}
    losses = [f"{len(rows)} rows of {table} are lost" for table, rows in lost.items() if rows]
    return [f"seed {seed}: {problem}" for problem in (*changes, *twice, *losses)]


def _summary(home: Path, seed: int) -> dict[str, Any]:
    """Return the summary of a finished run; run it to its end first if it is not finished."""
    done = dreamgym(home, *cycle(seed), "--json")
    if done.returncode != 0:
        raise RuntimeError(f"dreamgym run: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def _digests(summary: dict[str, Any], name: str) -> list[str]:
    value = summary["lineage"].get(name, [])
    return [one["__reference__"]["sha256"] for one in (value if isinstance(value, list) else [value])]


def _row_ids(settings: Settings, run_id: str) -> dict[str, list[str]]:
    """Return the row ids of each table, without the evaluations of other runs."""
    store = ReplayStore(settings)
    ids = {table: [row["row_id"] for row in store.read(table, columns=["row_id"])] for table in _TABLES}
    return {**ids, "evaluations": [one for one in ids["evaluations"] if one.startswith(run_id)]}


def settings_of(layout: Layout) -> Settings:
    """Return the settings of a process that uses this stack."""
    told = layout.client_environment()
    given = ("object_store", "replay_store", "s3_endpoint", "s3_access_key", "s3_secret_key")
    return Settings(home=layout.home, **{name: told[f"DREAMGYM_{name.upper()}"] for name in given})
