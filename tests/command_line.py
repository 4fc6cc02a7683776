"""The command line for tests: in a new process or in this one, on a home of its own, with recipes that take seconds."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from flows.command_line import main
from tests.fresh import reset_context

COMMAND = Path(sys.executable).with_name("dreamgym")

TOY = (
    "environment.num_train_tasks=16",
    "environment.num_valid_tasks=2",
    "environment.num_test_tasks=4",
    "ingest.episodes_per_task=2",
    "experience.num_on_policy_episodes=4",
    "experience.sft.epochs=0.4",
    "start.num_demonstrations=6",
    "start.renamed_copies=0",
    "start.sft.epochs=1",
    "dream.num_rounds=2",
    "dream.calibrate_every=2",
    "evaluation.num_shards=1",
    "rl.groups_per_round=4",
    "rl.group_size=4",
    "real.num_rounds=1",
)
"""Changes for a recipe that learns nothing, but goes through every stage."""

SMALLER = (
    "environment.num_train_tasks=4",
    "environment.num_valid_tasks=2",
    "environment.num_test_tasks=3",
    "environment.max_steps=5",
    "experience.num_on_policy_episodes=2",
    "experience.max_new_tokens=24",
    "experience.sft.epochs=0.2",
    "start.num_demonstrations=2",
    "dream.num_rounds=1",
    "rl.groups_per_round=2",
)
"""Changes for a recipe that is smaller than the toy, for long states or slow environments."""

LENIENT_GATE = (
    "gate.margin=1",
    "gate.false_promotion_rate=1",
    "gate.min_outcome_agreement=0",
    "gate.max_dream_real_gap=1",
    "gate.family_margin=1",
)
"""Changes for a gate that lets everything through."""


def environment(home: Path) -> dict[str, str]:
    """Return the variables of a command on this home; it uses one thread, since other processes share the cores."""
    return {**os.environ, "DREAMGYM_HOME": str(home), "DREAMGYM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def dreamgym(home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command with these additional settings, and wait until it ends."""
    told = {**environment(home), **settings}
    return subprocess.run([COMMAND, *arguments], env=told, capture_output=True, text=True, timeout=1800, check=False)


def started_in_a_terminal_of_its_own(home: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a command in its own session, so that a signal reaches all its processes as Ctrl-C does.

    Its surroundings name a proxy that is dead: nothing that a run asks of its own servers goes through it.
    """
    proxy = dict.fromkeys(("HTTP_PROXY", "http_proxy"), "http://127.0.0.1:9")
    return subprocess.Popen(
        [COMMAND, *arguments],
        env={**environment(home), **proxy, "NO_PROXY": "", "no_proxy": ""},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def dreamgym_here(home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, which need not import anything again.

    A test that runs a recipe this way uses `shared_prefect`.
    """
    said, complained = io.StringIO(), io.StringIO()
    told = {**environment(home), **settings}
    with _as_a_process(told, [str(COMMAND), *arguments]), redirect_stdout(said), redirect_stderr(complained):
        try:
            main()
        except SystemExit as end:
            code = end.code
        else:
            code = 0
    assert isinstance(code, int | None)
    return subprocess.CompletedProcess(arguments, code or 0, said.getvalue(), complained.getvalue())


@contextmanager
def python_here(home: Path, **settings: str) -> Iterator[None]:
    """Let Python calls in this process use a home, as if the process had just begun."""
    with _as_a_process({**environment(home), **settings}, sys.argv):
        yield


@contextmanager
def _as_a_process(variables: dict[str, str], argv: list[str]) -> Iterator[None]:
    """Set variables and arguments and reset the context, as in a new process.

    Afterwards variables, arguments and the Ctrl-C handler are restored, and the context is reset again.
    """
    heard = signal.getsignal(signal.SIGINT)
    with mock.patch.dict(os.environ, variables), mock.patch.object(sys, "argv", argv):
        reset_context()
        try:
            yield
        finally:
            reset_context()
            signal.signal(signal.SIGINT, heard)


def changed(*changes: str) -> list[str]:
    """Return the arguments that change a recipe."""
    return [part for change in changes for part in ("--set", change)]


def cycle_of(home: Path, recipe: str, changes: tuple[str, ...], **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a recipe from start to end, and check that it succeeds."""
    done = dreamgym_here(home, "run", recipe, *changed(*changes), "--json", **settings)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def lineage_of(home: Path, recipe: str, changes: tuple[str, ...], **settings: str) -> set[str]:
    """Run a recipe from start to end, and return the names of the artifacts in its lineage."""
    return set(json.loads(cycle_of(home, recipe, changes, **settings).stdout)["lineage"])


def digests(made: dict | list[dict]) -> list[str]:
    """Return the digests of an artifact, or of several, in the lineage of a summary."""
    return [one["__reference__"]["sha256"] for one in (made if isinstance(made, list) else [made])]
