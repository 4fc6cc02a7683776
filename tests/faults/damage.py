"""Flip, cut off or delete stored bytes; every reader must find out before it uses them."""

import os
import random
from collections.abc import Callable
from pathlib import Path

from infra.context import blobs, ledger, objects, replay_store
from infra.settings import settings
from models.network.language_model import load_model
from schemas.errors import GateRefused, IntegrityError, StorageError
from schemas.ledger import Decision, Entry
from schemas.recipes.data import RetrievalRecipe
from schemas.records import AgentTask, Reference, Step, Trajectory, Turn
from tasks.data.retrieval_index import encoder_of
from tasks.data.rows import Provenance, rows_of
from tasks.data.verify_rows import verify_rows
from tasks.judging.promote import promote
from tasks.running.artifacts import forget, get_frozen_model, get_trajectories, put_model, put_trajectories
from tests.faults.home import own_home
from tests.faults.outcome import Outcome

_BACKBONE = Path(__file__).parents[2] / "models" / "backbones" / "textworld-tiny"


def check(num_tries: int) -> Outcome:
    """Damage `num_tries` files that training or promotion depends on, one at a time."""
    outcome = Outcome("a bit flipped, a file cut off or deleted", "found before a gradient step or a promotion")
    rng = random.Random(0)
    with own_home():
        readers = _store_everything()
        files = _files()
        for _ in range(num_tries):
            file, how = rng.choice(files), rng.choice(sorted(_DAMAGES))
            intact = file.read_bytes()
            _DAMAGES[how](file, rng)
            outcome.tried(*([] if _found(readers) else [f"{how} {file}"]))
            file.write_bytes(intact)
        outcome.tried(*(["an intact store is refused"] if _found(readers) else []))
    return outcome


def _store_everything() -> list[Callable[[], object]]:
    """Store a checkpoint, trajectories and their rows, a gate and a ledger, and return their readers."""
    policy, episodes = put_model(load_model(_BACKBONE)), [_episode(number) for number in range(8)]
    rows = rows_of(episodes, Provenance("recipe", 0), encoder_of(RetrievalRecipe().encoder, None))
    replay_store().upsert("transitions", rows, "logs")
    data = put_trajectories(episodes, table_tag="logs")
    report = {"candidate": policy.sha256, "champion": "", "passed": False, "reasons": ["no"], "over_champion": None}
    gate = objects().put_json(report, "gate")
    for number in range(3):
        ledger().append(lambda _, number=number: Entry(Decision.JUDGED, policy, gate.sha256, by=str(number)))
    ledger.cache_clear()
    return [
        lambda: get_frozen_model(policy),
        lambda: get_trajectories(data),
        lambda: verify_rows([data]),
        lambda: _offer(policy, gate),
        _read_ledger,
    ]


def _files() -> list[Path]:
    """Return all files but the ledger's empty marks and what LanceDB wrote before the pinned version."""
    kept = [Path(blobs().root) / key for key in blobs().keys("") if not key.startswith("ledger-marks")]
    table = Path(settings().replay_store_uri) / "transitions.lance"
    manifest = min(table.glob("_versions/*.manifest"))  # LanceDB counts down
    return [*kept, *table.glob("data/*"), manifest]


def _offer(policy: Reference, gate: Reference) -> None:
    try:
        promote(policy, gate, "me")
    except GateRefused:
        return


def _read_ledger() -> None:
    ledger.cache_clear()
    ledger().history()


def _found(readers: list[Callable[[], object]]) -> bool:
    """Return whether any reader finds damage, as in a process that has loaded nothing before."""
    forget()
    for read in readers:
        try:
            read()
        except (IntegrityError, StorageError):
            return True
    return False


def _flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _cut_off(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size))


def _delete(path: Path, _: random.Random) -> None:
    path.unlink()


_DAMAGES = {"flipped": _flip, "cut off": _cut_off, "deleted": _delete}


def _episode(number: int) -> Trajectory:
    task = AgentTask(f"t{number}", "do it", "train", "f")
    return Trajectory(task, "real", [Turn("- a: b", "act", Step("- a: c", 1.0, done=True, success=True))])
