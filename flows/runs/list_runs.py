"""List the runs of a home: when and why they started, and how they ended."""

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from infra.promotion.ledger import Ledger
from infra.settings import settings
from infra.storage.blobs import open_blobs
from infra.storage.run_records import records
from schemas.ledger import Decision, History
from schemas.plain import restored
from schemas.runs import Record

_POLICIES = {"start": "start", "dream": "dream", "sim_to_real": "real"}
"""Column headings by policy."""


def run_rows() -> list[dict[str, Any]]:
    """Return every run as plain data, oldest first."""
    history = Ledger(open_blobs(settings())).history()
    return [_row(record, history) for record in records()]


def _row(record: Record, history: History) -> dict[str, Any]:
    return {
        "run_id": record["run_id"],
        "recipe": record["recipe"]["name"],
        "seed": record["recipe"]["seed"],
        "status": record["status"],
        "trigger": record["trigger"],
        "reasons": record["reasons"],
        "started_utc": record["started_utc"],
        "finished_utc": record["finished_utc"],
        "until": record["until"],
        "real_success": {name: _success(record, name) for name in _POLICIES},
        "verdict": verdict_of(record, history),
        "error": record.get("error", ""),
    }


def _success(record: Record, policy: str) -> float | None:
    return record.get("results", {}).get(policy, {}).get("real_success")


def verdict_of(record: Record, history: History) -> str:
    """Return whether a run's policy was promoted, or why it was refused; empty before it is judged."""
    made = restored(record.get("lineage", {}))
    own = {made[name].sha256 for name in ("dream", "sim_to_real") if name in made}
    if history.champion and history.champion.sha256 in own:
        real = (record.get("real_gate") or {}).get("reasons")
        return f"champion; sim-to-real refused: {'; '.join(real)}" if real else "champion"
    if own & history.withdrawn:
        return "rolled back"
    if any(one.decision is Decision.PROMOTED and one.policy and one.policy.sha256 in own for one in history.entries):
        return "promoted"
    gate = record.get("gate") or record.get("unproven") or {}
    succession = gate.get("over_champion") or {"reasons": []}
    reasons = [*gate.get("reasons", ()), *succession["reasons"]]
    return f"refused: {'; '.join(reasons)}" if reasons else "passed, not promoted" if gate else ""


def _why(row: dict[str, Any]) -> str:
    """Return the trigger of a run and its first reason; `dreamgym why` shows all of them."""
    first, *more = row["reasons"] or ["not known"]
    return f"{row['trigger']}: {first}{f' and {len(more)} more' if more else ''}"


def print_runs(rows: list[dict[str, Any]]) -> None:
    """Print each run with its success, and below it how it began and ended; then what to do next."""
    console = Console()
    width = max((len(row["run_id"]) for row in rows), default=0)
    if rows:
        console.print(f"{'run':<{width}} " + "".join(f"{heading:>7}" for heading in _POLICIES.values()), style="bold")
    for row in rows:
        success = "".join(f"{'' if one is None else f'{one:.1%}':>7}" for one in row["real_success"].values())
        console.print(f"{row['run_id']:<{width}} {success}", highlight=False)
        facts = "; ".join(filter(None, (row["status"], _why(row), row["verdict"])))
        console.print(Padding(Text(facts, style="dim"), (0, 0, 0, 2)))
    console.print(
        "next    dreamgym show RUN    or    dreamgym why RUN" if rows else "next    dreamgym run textworld-tiny"
    )
