"""Comparison of runs: differences in recipe and data, results with paired differences, and cost."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from flows.reports.compare_verdict import difference_chart, success_chart, verdicts
from infra.pages.html_pages import write_page
from infra.pages.wording import count, points, rate
from infra.settings import settings
from infra.storage.blobs import open_blobs
from infra.storage.object_store import ObjectStore
from models.measurement.intervals import Interval, independent_gain, paired_gain
from schemas.policies import POLICY_LABELS
from schemas.recipes.recipe import flat_fields
from schemas.records import Reference

_TEMPLATE = Path(__file__).with_name("compare.html.jinja")
_MEASURES = (
    "outcome_agreement",
    "dream_real_gap",
    "seconds",
    "offline_interactions",
    "evaluation_interactions",
    "endpoint_requests",
    "endpoint_tokens",
)
_MEASUREMENTS = ("measured", "successes")
"""Entries of a lineage that differ with every run."""
_MISSING = "not run"

Summary = dict[str, Any]


def comparison(summaries: list[Summary]) -> dict[str, Any]:
    """Return the differences between runs as plain data; lists have one item per run, the first is the baseline."""
    fields = [flat_fields(one["recipe"]) for one in summaries]
    digests = [_digests(one["lineage"]) for one in summaries]
    successes = [successes_of(one) for one in summaries]
    table = {
        "runs": [one["run_id"] for one in summaries],
        "recipe_differences": _different(fields),
        "data_differences": _different(digests),
        "results": [one["results"] for one in summaries],
        "differences": {policy: _differences(policy, summaries, successes) for policy in POLICY_LABELS},
        "tokens": [sum(one["stage_tokens"].values()) for one in summaries],
    }
    return table | {"paired_differences": _paired_only(table["differences"]), "verdicts": verdicts(table)}


def _paired_only(differences: dict[str, list[dict[str, Any] | None]]) -> dict[str, list[dict[str, Any] | None]]:
    return {
        policy: [one if one and one["paired"] else None for one in of_each] for policy, of_each in differences.items()
    }


def _differences(
    policy: str, summaries: list[Summary], successes: list[dict[str, dict[str, float]]]
) -> list[dict[str, Any] | None]:
    """Return the difference of each later run from the first, paired if they were tested on the same tasks."""
    results = [one["results"].get(policy) for one in summaries]
    by_task = [one.get(policy, {}) for one in successes]
    return [
        _paired(by_task[0], by_task[place]) or _independent(results[0], results[place])
        for place in range(1, len(summaries))
    ]


def _different(of_each: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the fields of several flat records whose values are not all the same."""
    names = sorted({name for one in of_each for name in one})
    columns = {name: [one.get(name) for one in of_each] for name in names}
    return {name: values for name, values in columns.items() if any(value != values[0] for value in values)}


def _digests(lineage: dict[str, Any]) -> dict[str, str]:
    """Return short digests of a run's inputs and results, by name."""
    several = {name: value if isinstance(value, list) else [value] for name, value in lineage.items()}
    return {
        name: " ".join(one["__reference__"]["sha256"][:12] for one in values)
        for name, values in several.items()
        if name not in _MEASUREMENTS
    }


def successes_of(summary: Summary) -> dict[str, dict[str, float]]:
    """Return real success by task for each policy that the run evaluated."""
    kept = summary["lineage"].get("successes")
    return ObjectStore(open_blobs(settings())).get_json(Reference(**kept["__reference__"])) if kept else {}


def _paired(first: dict[str, float], other: dict[str, float]) -> dict[str, Any] | None:
    """Return the paired difference on the tasks that both were evaluated on; None if there are none."""
    shared = sorted(first.keys() & other.keys())
    if not shared:
        return None
    gain = paired_gain([other[task] for task in shared], [first[task] for task in shared])
    return {**asdict(gain), "num_tasks": len(shared), "paired": True}


def _independent(first: dict[str, Any] | None, other: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the difference on different tasks; None if one of the runs did not evaluate the policy."""
    if not first or not other:
        return None
    rates = (Interval(one["real_success"], *one["interval"]) for one in (other, first))
    return {**asdict(independent_gain(*rates)), "num_tasks": 0, "paired": False}


def print_comparison(table: dict[str, Any], page: Path) -> None:
    """Print the comparison as tables, and the path of the page."""
    console = Console()
    for verdict in table["verdicts"]:
        console.print(verdict, soft_wrap=True, highlight=False, markup=False)
    for title, rows in rows_of(table).items():
        shown = Table("", *table["runs"], title=title)
        for name, cells in rows:
            shown.add_row(name, *cells)
        console.print(shown)
    console.print(f"page    {page}", soft_wrap=True)


def page_of(table: dict[str, Any]) -> Path:
    """Write one self-contained HTML page of the comparison; return its path."""
    return write_page(
        "-".join(["compare", *table["runs"]]),
        _TEMPLATE,
        runs=table["runs"],
        verdicts=table["verdicts"],
        difference_chart=difference_chart(table),
        success_chart=success_chart(table),
        tables={title: [[name, *cells] for name, cells in rows if cells] for title, rows in rows_of(table).items()},
    )


def rows_of(table: dict[str, Any]) -> dict[str, list[tuple[str, list[str]]]]:
    """Return the rows for terminal and page, by title: a name and one cell per run."""
    return {
        "Recipes: what differs": _plain_rows(table["recipe_differences"]),
        "Data and models: what differs": _plain_rows(table["data_differences"]),
        "Real success on held-out tasks": _success_rows(table),
        "Measures and cost": _measure_rows(table),
    }


def _plain_rows(differences: dict[str, list[Any]]) -> list[tuple[str, list[str]]]:
    rows = [
        (name, [_MISSING if value is None else str(value) for value in values]) for name, values in differences.items()
    ]
    return rows or [("nothing", [])]


def _success_rows(table: dict[str, Any]) -> list[tuple[str, list[str]]]:
    rows: list[tuple[str, list[str]]] = []
    for policy, label in POLICY_LABELS.items():
        cells = [rate(result[policy]) if policy in result else _MISSING for result in table["results"]]
        if any(cell != _MISSING for cell in cells):
            rows.append((label, cells))
            rows.append((f"  difference, {label}", ["", *map(_difference, table["differences"][policy])]))
    return rows


def _measure_rows(table: dict[str, Any]) -> list[tuple[str, list[str]]]:
    rows = [
        (measure.replace("_", " "), [_number(result.get(measure)) for result in table["results"]])
        for measure in _MEASURES
    ]
    return [*rows, ("tokens", [f"{tokens:,}" for tokens in table["tokens"]])]


def _difference(gain: dict[str, Any] | None) -> str:
    if gain is None:
        return _MISSING
    return (
        f"{points(gain)} on {count(gain['num_tasks'])} tasks"
        if gain["paired"]
        else f"{points(gain)} on different tasks"
    )


def _number(value: float | None) -> str:
    if value is None:
        return _MISSING
    return f"{value:,}" if isinstance(value, int) or value >= 1000 else f"{value:.3g}"
