"""The latest runs on one page: success with intervals, champion changes, cost, and new data."""

from pathlib import Path
from typing import Any

import plotly.graph_objects as plot
from plotly.offline import get_plotlyjs
from rich.console import Console
from rich.table import Table

from flows.runs.list_runs import verdict_of
from infra.promotion.ledger import Ledger
from infra.settings import settings
from infra.storage.blobs import open_blobs
from infra.storage.run_records import records
from infra.pages.html_pages import write_page
from schemas.errors import InputError
from schemas.policies import POLICY_LABELS
from schemas.runs import Record

_TEMPLATE = Path(__file__).with_name("nights.html.jinja")
_COLOURS = {"start": "#7b8794", "dream": "#1b7f5c", "champion": "#b7791f", "sim_to_real": "#2b6cb0"}
_MARKS = {"start": "circle-open", "dream": "circle", "champion": "diamond-open", "sim_to_real": "square"}


def nights(last: int) -> list[dict[str, Any]]:
    """Return the latest finished runs as plain data, oldest first.

    Raises:
        InputError: no run has finished.
    """
    history = Ledger(open_blobs(settings())).history()
    finished = [one for one in records() if one.get("results")]
    if not finished:
        raise InputError("no run has finished in this home yet: `dreamgym runs` shows what became of those that began")
    shown = finished[-last:]
    before = [None, *finished][len(finished) - len(shown)]
    return [
        _night(one, earlier, verdict_of(one, history)) for one, earlier in zip(shown, [before, *shown], strict=False)
    ]


def _night(record: Record, before: Record | None, verdict: str) -> dict[str, Any]:
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
    console.print(table)
    console.print(f"page    {page}", soft_wrap=True)


def page_of_nights(shown: list[dict[str, Any]]) -> Path:
    """Write one self-contained HTML page; return its path."""
    rows = [[cell(one) for _, cell in _COLUMNS] for one in shown]
    headings = [heading for heading, _ in _COLUMNS]
    figures = {"Real success, with 95% intervals; a star marks a new champion": _success(shown), "Cost": _cost(shown)}
    html = {title: _html(figure) for title, figure in figures.items()}
    return write_page(
        f"last-{len(shown)}-runs", _TEMPLATE, headings=headings, rows=rows, figures=html, plotly=get_plotlyjs()
    )


def _success(shown: list[dict[str, Any]]) -> plot.Figure:
    figure = plot.Figure()
    for name, label in POLICY_LABELS.items():
        known = [(one["run_id"], one["policies"][name]) for one in shown if name in one["policies"]]
        if not known:
            continue
        success = [policy["real_success"] for _, policy in known]
        above = [policy["interval"][1] - policy["real_success"] for _, policy in known]
        below = [policy["real_success"] - policy["interval"][0] for _, policy in known]
        error = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
        mark, runs = {"color": _COLOURS[name], "symbol": _MARKS[name], "size": 9}, [run for run, _ in known]
        figure.add_scatter(x=runs, y=success, error_y=error, name=label, mode="lines+markers", marker=mark)
    crowned = [(one["run_id"], one["policies"][one["promoted"]]["real_success"]) for one in shown if one["promoted"]]
    figure.add_scatter(
        x=[run for run, _ in crowned],
        y=[success for _, success in crowned],
        name="new champion",
        mode="markers",
        marker={"symbol": "star", "size": 16, "color": "#d69e2e"},
    )
    return figure.update_yaxes(title="real success", tickformat=".0%", range=[-0.02, 1.02])


def _cost(shown: list[dict[str, Any]]) -> plot.Figure:
    runs = [one["run_id"] for one in shown]
    figure = plot.Figure()
    figure.add_bar(x=runs, y=[one["seconds"] / 60 for one in shown], name="minutes", marker={"color": "#7b8794"})
    return figure.update_yaxes(title="minutes")


def _html(figure: plot.Figure) -> str:
    figure.update_layout(template="plotly_white", height=360, legend={"orientation": "h", "y": 1.15})
    return figure.to_html(full_html=False, include_plotlyjs=False, config={"responsive": True, "displayModeBar": False})


def _policy(name: str) -> Any:
    def cell(one: dict[str, Any]) -> str:
        if (policy := one["policies"].get(name)) is None:
            return ""
        low, high = policy["interval"]
        return f"{policy['real_success']:.1%} ({low:.1%} to {high:.1%})"

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
