"""Ratios against what people use today, in one run, interleaved, each contestant in its own process.

    make bench              the ratios, a step without MLflow, and the overhead of a default cycle (ten minutes more)
    make bench CYCLE=       without the cycle

Exits with 1 below a floor, and refuses to measure on a loaded machine.
"""

import os
import statistics
import subprocess
import sys

from rich.console import Console
from rich.table import Table

ROWS = (
    ("rollout tokens/s, group 8", "rollout_ours", "rollout_transformers", "Hugging Face generate", 2.5, 1.8),
    ("GRPO update, tokens/s", "update_ours", "update_trl", "TRL 1.16, bf16", 3.0, 2.0),
    ("retrieval, queries/s at 100k", "retrieval_ours", "retrieval_lancedb", "LanceDB brute force", 20.0, 20.0),
)
ROUNDS = 3
MAX_OVERHEAD = 0.05
MAX_SLOWDOWN = 1.05


def measure(name: str) -> float:
    """One contestant, once, in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.contestants", name],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_WAIT_POLICY": "ACTIVE"},  # the fastest for everybody on an idle machine
    )
    note = next((line for line in done.stderr.splitlines() if line.startswith("recall")), "")
    if note:
        Console().print(f"{name}: {note}")
    return float(done.stdout.splitlines()[-1])


def main() -> int:
    """Measure every row; return the exit code."""
    if os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1):
        Console().print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): ratios would mean nothing")
        return 1
    table = Table("what", "against", "ours", "theirs", "ratio", "range", "aim", "floor")
    below = False
    for what, ours, theirs, peer, aim, floor in ROWS:
        pairs = []
        for number in range(ROUNDS):
            order = (ours, theirs) if number % 2 == 0 else (theirs, ours)
            measured = {name: measure(name) for name in order}
            pairs.append((measured[ours], measured[theirs]))
        ratios = [a / b for a, b in pairs]
        ratio = statistics.median(ratios)
        below |= ratio < floor
        own, other = (statistics.median(values) for values in zip(*pairs, strict=True))
        table.add_row(
            what,
            peer,
            f"{own:,.0f}",
            f"{other:,.0f}",
            f"{ratio:.2f}x",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
            f"{aim}x",
            f"{floor}x",
        )
    Console().print(table)
    below |= _is_slowed_down_without_mlflow()
    return int(below | (_overhead_is_too_high() if "cycle" in sys.argv else False))


def _is_slowed_down_without_mlflow() -> bool:
    ratio = measure("slowdown_without_mlflow")
    Console().print(
        f"a training step while MLflow is away: {ratio:.3f} of one while it is there, at most {MAX_SLOWDOWN}"
    )
    return ratio > MAX_SLOWDOWN


def _overhead_is_too_high() -> bool:
    share = measure("overhead")
    Console().print(f"orchestration, tracking and storage: {share:.1%} of a default cycle, at most {MAX_OVERHEAD:.0%}")
    return share > MAX_OVERHEAD


if __name__ == "__main__":
    raise SystemExit(main())
