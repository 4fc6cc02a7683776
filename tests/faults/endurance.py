"""Many deployed runs in a row on one stack: what the servers hold afterwards, and what is left over."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil

from flows.planning.load_recipe import load_recipe
from infra.stack.layout import Layout
from infra.storage.blobs import open_blobs
from infra.storage.lease import is_free, last_number
from tests.command_line import TOY, dreamgym
from tests.faults.calm import settings_of
from tests.faults.outcome import Outcome
from tests.integration.stack_home import TEMPORARY, running_stack

_NO_EVENTS = ("gate.min_outcome_agreement=0", "gate.max_dream_real_gap=1")
"""Changes with which the gate refuses and no alarm is raised, so that nothing else starts meanwhile."""
_FLOW_RUN = "prefect.engine"
_WORKSPACES, _TIDY_WITHIN_S = "prefect-workspace-attempt-*", 30
"""Folders of a flow run's environment, passwords included, and seconds within which they are removed."""
_FEW = 5
_MAX_GROWTH = 0.15
_SPARE_FILES = 20


@dataclass(frozen=True)
class Reading:
    """Resources that the stack's Python processes hold between two runs."""

    num_processes: int
    num_files: int
    num_bytes: int
    num_temporary: int

    @classmethod
    def of(cls, layout: Layout) -> "Reading":
        """Take a reading, once the worker has tidied up."""
        ours, temporary = _processes(layout), layout.home / TEMPORARY
        deadline = time.monotonic() + _TIDY_WITHIN_S
        while list(temporary.glob(_WORKSPACES)) and time.monotonic() < deadline:
            time.sleep(0.5)
        held = sum(one.memory_full_info().uss for one in ours)
        return cls(len(ours), sum(one.num_fds() for one in ours), held, len(list(temporary.iterdir())))


def _processes(layout: Layout) -> list[psutil.Process]:
    """Return the Python servers and the worker, once the last flow run's process is gone.

    PostgreSQL and SeaweedFS are left out: they fill caches of a configured size.
    """
    supervisor = psutil.Process(int((layout.folder / "supervisor.pid").read_text()))
    while True:
        with suppress(psutil.NoSuchProcess):  # a process that ends just now
            commands = {one: one.cmdline() for one in supervisor.children(recursive=True)}
            if not any(_FLOW_RUN in command for command in commands.values()):
                return [one for one, command in commands.items() if any("python" in part for part in command[:1])]
        time.sleep(0.5)


def check(num_cycles: int) -> Outcome:
    """Run the recipe `num_cycles` times in the worker, with another seed each time.

    If there are only a few runs, they end with the experience model.
    """
    until = "evaluate" if num_cycles > _FEW else "experience"
    outcome = Outcome("cycles in a row on the server stack", "no process, file handle, lock or memory more than before")
    with running_stack() as layout:
        dreamgym(layout.home, "deploy", "textworld-tiny")
        readings = []
        for seed in range(num_cycles):
            _run(layout, seed, until)
            readings.append(Reading.of(layout))
            outcome.tried()
        outcome.broken += _growth(readings) + _held_leases(layout)
    return outcome


def _run(layout: Layout, seed: int, until: str) -> None:
    recipe = load_recipe("textworld-tiny", [*TOY, *_NO_EVENTS, f"seed={seed}"])
    parameters = json.dumps({"recipe": recipe.model_dump(mode="json"), "until": until})
    command = [
        sys.executable,
        "-m",
        "prefect",
        "deployment",
        "run",
        "retrain/nightly",
        "--params",
        parameters,
        "--watch",
    ]
    subprocess.run(command, env={**os.environ, **layout.client_environment()}, capture_output=True, check=True)


def _growth(readings: list[Reading]) -> list[str]:
    """Return what grew after the first quarter of the runs; before that, servers load what they need."""
    first, last = readings[len(readings) // 4], readings[-1]
    problems = []
    if last.num_processes > first.num_processes:
        problems.append(f"{first.num_processes} processes became {last.num_processes}")
    if last.num_files > first.num_files + _SPARE_FILES:
        problems.append(f"{first.num_files} file handles became {last.num_files}")
    if last.num_bytes > first.num_bytes * (1 + _MAX_GROWTH):
        problems.append(f"{first.num_bytes / 2**20:.0f} MB became {last.num_bytes / 2**20:.0f}")
    if last.num_temporary > first.num_temporary:
        problems.append(f"{first.num_temporary} temporary files became {last.num_temporary}")
    return problems


def _held_leases(layout: Layout) -> list[str]:
    blobs = open_blobs(settings_of(layout))
    names = {key.split("/")[1] for key in blobs.keys("leases/")}
    return [f"the lease of {name} is held" for name in names if not is_free(blobs, name, last_number(blobs, name))]
