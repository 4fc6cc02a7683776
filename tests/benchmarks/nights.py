"""Thirty toy nights with growing logs: steps taken over, promotions and cost, and whether a later night costs more.

python -m tests.benchmarks.nights [NUMBER]

Prints a line a night: steps taken over, champion changes, CPU seconds of all its processes, rows that were stored, and
bytes that the home grew by besides those rows. Exits with 1 if the medians of nights 21 to 30 are more than 1.3 times
those of nights 6 to 15, or if a process is left.
"""

import json
import resource
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from infra.settings import Settings
from infra.storage.replay_store import ReplayStore
from tests.command_line import LENIENT_GATE, SMALLER, TOY, changed, dreamgym
from tests.left_processes import processes_on
from tests.logged import logged_rows, write_log

_EARLY, _LATE = slice(5, 15), slice(20, 30)
_BOUND = 1.3
_EPISODES_A_NIGHT = 2
_TABLES = ("transitions", "agent_tasks", "evaluations")


@dataclass(frozen=True)
class Night:
    """Cost and result of a night."""

    num_steps: int
    num_taken_over: int
    promoted: str
    cpu_s: float
    num_rows: int
    num_bytes: int
    """Growth of the home, without the new rows themselves, which count as JSON."""


def play_nights(number: int) -> list[Night]:
    """Run nights one after the other, each with two logged episodes more."""
    with tempfile.TemporaryDirectory() as folder:
        home, logs = Path(folder) / "home", Path(folder) / "logs"
        nights: list[Night] = []
        for count in range(number):
            first = count * _EPISODES_A_NIGHT
            write_log(logs / f"night-{count:02}.jsonl", logged_rows(_EPISODES_A_NIGHT, first))
            nights.append(_played(home, logs))
            _tell(count + 1, nights[-1])
        left = processes_on(home)
        print(f"processes left: {len(left)}")
        if left:
            raise SystemExit(1)
    return nights


def _played(home: Path, logs: Path) -> Night:
    changes = changed(*TOY, *SMALLER, *LENIENT_GATE, "environment.num_train_tasks=64", f"ingest.path={logs}")
    before = (_cpu_s(), _size(home), *_rows(home))
    done = dreamgym(home, "run", "textworld-tiny", *changes, "--json")
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    record = json.loads(done.stdout)
    taken_over = sum(step["taken_over"] for step in record["steps"])
    cpu_s, size, num_rows, size_of_rows = (
        after - earlier for after, earlier in zip((_cpu_s(), _size(home), *_rows(home)), before, strict=True)
    )
    return Night(len(record["steps"]), taken_over, record["promoted"], cpu_s, int(num_rows), int(size - size_of_rows))


def _cpu_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _size(home: Path) -> int:
    return sum(file.stat().st_size for file in home.rglob("*") if file.is_file())


def _rows(home: Path) -> tuple[int, int]:
    """Return the number of stored rows, and their bytes as JSON."""
    store = ReplayStore(Settings(home=home))
    rows = [json.dumps(row, default=str) for table in _TABLES for row in store.read(table)]
    return len(rows), sum(map(len, rows))


def _tell(number: int, night: Night) -> None:
    print(
        f"night {number:2}: {night.num_taken_over} of {night.num_steps} steps taken over, promoted {night.promoted or 'none'}, "
        f"{night.cpu_s:.1f} CPU s, {night.num_rows} rows, {night.num_bytes / 1e6:.2f} MB besides",
        flush=True,
    )


def is_level(nights: list[Night]) -> bool:
    """Return whether late nights cost at most 1.3 times as much as early ones."""
    fine = True
    for what in ("cpu_s", "num_bytes"):
        early, late = (median(getattr(night, what) for night in nights[part]) for part in (_EARLY, _LATE))
        print(f"{what}: median of nights 6 to 15 {early:,.1f}, of nights 21 to 30 {late:,.1f}, {late / early:.2f}x")
        fine = fine and late <= _BOUND * early
    return fine


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    played = play_nights(number)
    print(f"{sum(bool(night.promoted) for night in played)} of {number} nights promoted a policy")
    sys.exit(0 if number < 30 or is_level(played) else 1)
