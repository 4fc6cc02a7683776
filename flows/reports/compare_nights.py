"""The latest runs on one page: success with intervals, champion changes, cost, and new data."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from flows.reports.nights_verdict import cost_charts, success_charts, tiles, verdict
from flows.runs.list_runs import verdict_of
from infra.pages.html_pages import write_page
from infra.pages.wording import rate
from infra.promotion.ledger import Ledger
from infra.settings import settings
from infra.storage.blobs import open_blobs
from infra.storage.run_records import records
from schemas.errors import InputError
from schemas.policies import POLICY_LABELS
from schemas.runs import Record

_TEMPLATE = Path(__file__).with_name("nights.html.jinja")


def nights(last: int) -> list[dict[str, Any]]:
    """Return the latest finished runs as plain data, oldest first.

    Raises:
        InputError: no run has finished.
    """
    history = Ledger(open_blobs(settings())).history()
    finished = [one for one in records() if one.get("results")]
    if not finished:
        raise InputError("no run has finished in this home yet: `dreamgym runs` shows what became of those that began")
    before: dict[str, Record] = {}
    shown: list[dict[str, Any]] = []
    for one in finished:
        name = one["recipe"]["name"]
        shown.append(_night(one, before.get(name), verdict_of(one, history)))
        before[name] = one
    return shown[-last:]


def _night(record: Record, before: Record | None, verdict: str) -> dict[str, Any]:
    """Return a run as plain data; new episodes are those since the run before of the same recipe."""
    results = record["results"]
    return {
        "run_id": record["run_id"],
        "recipe": record["recipe"]["name"],
        "started_utc": record["started_utc"],
        "policies": {
            name: {"real_success": results[name]["real_success"], "interval": results[name]["interval"]}
            for name in POLICY_LABELS
            if name in results
        },
        "verdict": verdict,
        "promoted": _crowned(record),
        "seconds": results["seconds"],
        "tokens": sum(record["stage_tokens"].values()),
        "real_steps": sum(one["real_interactions"] for one in results.values() if isinstance(one, dict)),
        "episodes": _num_episodes(record),
        "new_episodes": _num_episodes(record) - (_num_episodes(before) if before else 0),
        "reasons": record["reasons"],
    }


def _crowned(record: Record) -> str:
    """Return the run's policy that became the new champion; empty if none did, or it was champion before."""
    name = record.get("promoted", "")
    before = (record["left_behind"].get("champion") or {}).get("sha256")
    return name if name and record["lineage"][name]["__reference__"]["sha256"] != before else ""


def _num_episodes(record: Record) -> int:
    """Return the number of logged episodes that the run read."""
    return int(record["lineage"]["logs"]["__reference__"]["notes"]["num_episodes"])


def print_nights(shown: list[dict[str, Any]], page: Path) -> None:
    """Print the most important columns as a table, and the path of the page."""
    table = Table(title=f"The last {len(shown)} runs: real success")
    columns = [(heading, cell) for heading, cell in _COLUMNS if heading in _IN_TERMINAL]
    for heading, _ in columns:
        table.add_column(heading, overflow="fold")
    for one in shown:
        table.add_row(*(cell(one) for _, cell in columns))
    console = Console()
    console.print(verdict(shown), soft_wrap=True, highlight=False, markup=False)
    console.print(table)
    console.print(f"page    {page}", soft_wrap=True)


def page_of_nights(shown: list[dict[str, Any]]) -> Path:
    """Write one self-contained HTML page; return its path."""
    return write_page(
        f"last-{len(shown)}-runs",
        _TEMPLATE,
        verdict=verdict(shown),
        tiles=tiles(shown),
        success_charts=success_charts(shown),
        cost_charts=cost_charts(shown),
        headings=[heading for heading, _ in _COLUMNS],
        rows=[[cell(one) for _, cell in _COLUMNS] for one in shown],
    )


def _policy(name: str) -> Any:
    def cell(one: dict[str, Any]) -> str:
        return rate(one["policies"][name]) if name in one["policies"] else ""

    return cell


_COLUMNS: list[tuple[str, Any]] = [
    ("run", lambda one: one["run_id"]),
    ("why", lambda one: "; ".join(one["reasons"])),
    ("logged episodes", lambda one: f"{one['episodes']:,} ({one['new_episodes']:+,})"),
    *((label, _policy(name)) for name, label in POLICY_LABELS.items()),
    ("verdict", lambda one: one["verdict"]),
    ("real RL steps", lambda one: f"{one['real_steps']:,}"),
    ("tokens", lambda one: f"{one['tokens']:,}"),
    ("seconds", lambda one: f"{one['seconds']:,.0f}"),
]
_IN_TERMINAL = ("run", "logged episodes", POLICY_LABELS["dream"], POLICY_LABELS["champion"], "verdict")
