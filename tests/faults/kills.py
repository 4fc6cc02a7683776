"""kill -9 at random points of a cycle on the server stack, again and again; then it is run to its end."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from infra.replay_store import ReplayStore
from infra.settings import Settings
from infra.stack.layout import Layout
from tests.faults.outcome import Outcome
from tests.integration.stack_home import free_ports, missing_servers, stack_home

_COMMAND = Path(sys.executable).with_name("dreamgym")
_TABLES = ("transitions", "agent_tasks", "evaluations")
_TOY = [
    "environment.num_train_tasks=20",
    "environment.num_valid_tasks=6",
    "environment.num_test_tasks=10",
    "experience.num_refit_episodes=10",
    "start.num_demonstrations=6",
    "start.sft.epochs=2",
    "dream.num_rounds=2",
    "dream.calibrate_every=1",
    "grpo.groups_per_round=4",
    "real.num_rounds=1",
    "gate.margin=1",
    "gate.min_outcome_agreement=0",
    "gate.max_dream_real_gap=1",
    "gate.family_margin=1",
]


def check(num_kills: int) -> Outcome:
    """As many kills as fit into cycles of other seeds, each run to its end and compared with an undisturbed one."""
    outcome = Outcome("kill -9 of a cycle on the server stack", "no row lost or twice, same data and weights")
    if reason := missing_servers():
        raise RuntimeError(reason)
    rng = random.Random(0)
    with stack_home() as home:
        ports = [part for name, port in free_ports().items() for part in (f"--{name}-port", str(port))]
        _dreamgym(home, "up", *ports)
        try:
            seed = 0
            while outcome.num_tries < num_kills:
                _kill_now_and_then(home, seed, num_kills, rng, outcome)
                outcome.broken += _differences(home, seed)
                seed += 1
        finally:
            _dreamgym(home, "down")
    return outcome


def _kill_now_and_then(home: Path, seed: int, num_kills: int, rng: random.Random, outcome: Outcome) -> None:
    """Until the kills are used up, or the cycle was faster."""
    while outcome.num_tries < num_kills:
        process = subprocess.Popen(
            [_COMMAND, *_run(seed)],
            env=_environment(home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout=rng.uniform(5, 20))
            return
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            outcome.tried()


def _differences(home: Path, seed: int) -> list[str]:
    """Between the cycle that was killed so often and an undisturbed one in an embedded home."""
    disturbed = _summary(home, seed)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as calm:
        quiet = _summary(Path(calm), seed)
        calm_rows = _row_ids(Settings(home=Path(calm)), quiet["cycle_id"])
    layout = Layout.of(home)
    told = layout.client_environment()
    stored = Settings(
        home=home,
        replay_store=told["DREAMGYM_REPLAY_STORE"],
        s3_endpoint=told["DREAMGYM_S3_ENDPOINT"],
        s3_access_key=told["DREAMGYM_S3_ACCESS_KEY"],
        s3_secret_key=told["DREAMGYM_S3_SECRET_KEY"],
    )
    rows = _row_ids(stored, disturbed["cycle_id"])
    problems = [
        f"seed {seed}: {name} differs" for name in quiet["lineage"] if _digest(quiet, name) != _digest(disturbed, name)
    ]
    for table in _TABLES:
        if len(rows[table]) != len(set(rows[table])):
            problems.append(f"seed {seed}: rows of {table} are there twice")
        if missing := set(calm_rows[table]) - set(rows[table]):
            problems.append(f"seed {seed}: {len(missing)} rows of {table} are lost")
    return problems


def _digest(summary: dict, name: str) -> list[str]:
    value = summary["lineage"].get(name, [])
    return [one["__reference__"]["sha256"] for one in (value if isinstance(value, list) else [value])]


def _row_ids(settings: Settings, cycle_id: str) -> dict[str, list[str]]:
    """Ids of the rows of each table; other cycles' evaluations are left out."""
    store = ReplayStore(settings)
    ids = {table: [row["row_id"] for row in store.read(table, columns=["row_id"])] for table in _TABLES}
    return {**ids, "evaluations": [one for one in ids["evaluations"] if one.startswith(cycle_id)]}


def _summary(home: Path, seed: int) -> dict:
    done = _dreamgym(home, *_run(seed), "--json")
    return json.loads(done.stdout)


def _run(seed: int) -> list[str]:
    changes = [part for change in (*_TOY, f"seed={seed}") for part in ("--set", change)]
    return ["run", "textworld-tiny", *changes]


def _dreamgym(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([_COMMAND, *arguments], env=_environment(home), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"dreamgym {arguments[0]}: {done.stderr[-2000:]}")
    return done


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "DREAMGYM_HOME": str(home), "DREAMGYM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
