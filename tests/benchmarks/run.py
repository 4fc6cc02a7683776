"""Ratios of our rates to those of common tools, in one session, interleaved, each contestant in its own process.

    make bench              the table, and the overhead of a default run: an hour
    make bench CYCLE=       the table alone
    make bench ROWS="update episodes"   only what these modules of tests/benchmarks measure

Exits with 1 below a floor. A loaded machine (1) or a module that has no rows (2) ends it before anything is measured.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from infra.engines.vllm_environment import is_there
from infra.settings import settings

MAX_OVERHEAD = 0.05
MAX_SLOWDOWN = 1.05
AIMED_GROWTH, MAX_GROWTH = 1.3, 1.6
_WIDTH = 132
"""Width of the table, also where it goes into a file."""


@dataclass(frozen=True)
class Row:
    """Two contestants of a module, and the ratio that ours is to reach."""

    what: str
    module: str
    ours: str
    theirs: str
    peer: str
    aim: float
    floor: float
    num_pairs: int = 3


ROWS = (
    Row("single-turn rollouts, tokens/s", "single_turn", "ours", "transformers", "Hugging Face generate", 2.5, 1.8),
    Row("GRPO update, tokens/s", "update", "ours", "trl", "TRL 1.16, bf16", 3, 2),
    Row("8-turn episodes/s", "episodes", "ours", "trl", "TRL environment_factory", 4, 3),
    Row("whole rounds/s", "round", "ours", "glued", "TRL + transformers + LanceDB", 3, 2),
    Row("the same, no two situations alike", "round", "ours_apart", "glued_apart", "the same", 3, 2),
    Row("8-turn episodes/s on vLLM", "episodes", "ours_on_vllm", "chat_on_vllm", "its chat API", 1.5, 1),
    Row("retrieval, queries/s, 100k", "retrieval", "ours", "lancedb", "LanceDB brute force", 20, 10),
    Row("", "retrieval", "ours", "faiss", "FAISS HNSW", 1 / 2, 1 / 4),
    Row("retrieval, queries/s, 1M", "retrieval", "ours_large", "lancedb_large", "LanceDB brute force", 20, 10, 1),
    Row("", "retrieval", "ours_large", "faiss_large", "FAISS HNSW", 1 / 2, 1 / 4, 1),
)


def measure(module: str, function: str) -> Any:
    """Run one contestant, once, in a fresh process, and return its result."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.contestant", module, function],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_WAIT_POLICY": "ACTIVE"},  # fastest for every contestant on an idle machine
    )
    if done.returncode:
        raise SystemExit(f"{module}.{function} failed:\n{done.stderr[-4000:]}")
    for line in done.stderr.splitlines():
        if line.startswith("recall"):
            Console().print(line)
    return json.loads(done.stdout.splitlines()[-1])


def main(arguments: Sequence[str]) -> int:
    """Measure the requested rows; return the exit code."""
    modules = [one for one in arguments if one != "cycle"]
    measured = sorted({row.module for row in ROWS})
    if unknown := [one for one in modules if one not in measured]:
        Console().print(f"no row is measured by {', '.join(unknown)}; rows are measured by {', '.join(measured)}")
        return 2
    if os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1):
        Console().print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): ratios would mean nothing")
        return 1
    chosen = [row for row in ROWS if not modules or row.module in modules]
    below = _compare(chosen)
    if not modules or "episodes" in modules:
        below |= _grows()
    if not modules:
        below |= _is_slowed_down_without_mlflow()
    return int(below | (_overhead_is_too_high() if "cycle" in arguments else False))


def _compare(rows: Sequence[Row]) -> bool:
    """Print the table; return whether a ratio is below its floor."""
    table = Table("what", "against", "ours", "theirs", "ratio", "95% interval", "aim", "floor")
    below = False
    for row in rows:
        if row.peer == "its chat API" and not is_there(settings()):
            table.add_row(row.what, row.peer, *["not run"] * 4, f"{row.aim:g}x", f"{row.floor:g}x")
            continue
        pairs = list(_pairs(row))
        ratio, low, high = ratio_of(pairs)
        below |= ratio < row.floor
        own, other = (_middle([pair[side] for pair in pairs]) for side in (0, 1))
        found = _number(own), _number(other), f"{ratio:.2f}x", f"{low:.2f} to {high:.2f}"
        table.add_row(row.what, row.peer, *found, f"{row.aim:g}x", f"{row.floor:g}x")
    Console(width=max(_WIDTH, Console().width)).print(table)
    return below


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _pairs(row: Row) -> Iterator[tuple[list[float], list[float]]]:
    """Yield the rates of both contestants, which take turns to begin."""
    for number in range(row.num_pairs):
        order = (row.ours, row.theirs) if number % 2 == 0 else (row.theirs, row.ours)
        measured = {name: measure(row.module, name) for name in order}
        yield measured[row.ours], measured[row.theirs]


def ratio_of(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> tuple[float, float, float]:
    """Return the ratio of the median rates with its 95% interval.

    The interval is a bootstrap over pairs of processes and the repeats in each.
    """
    rng = np.random.default_rng(0)

    def drawn() -> float:
        chosen = [pairs[i] for i in rng.integers(0, len(pairs), len(pairs))]
        own, other = ([rng.choice(pair[side], len(pair[side])) for pair in chosen] for side in (0, 1))
        return _middle(own) / _middle(other)

    low, high = np.quantile([drawn() for _ in range(2_000)], [0.025, 0.975])
    return _middle([own for own, _ in pairs]) / _middle([other for _, other in pairs]), float(low), float(high)


def _middle(processes: Sequence[Sequence[float]]) -> float:
    """Return the median over processes of the median of each."""
    return statistics.median(float(np.median(rates)) for rates in processes)


def _grows() -> bool:
    ratio, whole = measure("episodes", "growth"), measure("episodes", "growth_of_whole_episodes")
    Console().print(
        f"a step at turn 32: {ratio:.2f} of one at turn 2, aim {AIMED_GROWTH}, at most {MAX_GROWTH}; "
        f"{whole:.2f} where the policy sees the whole episode, for which there is no limit"
    )
    return ratio > MAX_GROWTH


def _is_slowed_down_without_mlflow() -> bool:
    ratio = measure("overheads", "slowdown_without_mlflow")
    Console().print(
        f"a training step while MLflow is away: {ratio:.3f} of one while it is there, at most {MAX_SLOWDOWN}"
    )
    return ratio > MAX_SLOWDOWN


def _overhead_is_too_high() -> bool:
    share = measure("overheads", "of_a_cycle")
    Console().print(f"orchestration, tracking and storage: {share:.1%} of a default cycle, at most {MAX_OVERHEAD:.0%}")
    return share > MAX_OVERHEAD


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
