"""Evidence: the default recipe over several seeds, with its real-only baseline or its ablations, as tables.

python -m flows.evidence textworld-tiny               seeds 0, 1, 2 and real-only GRPO from the same start
python -m flows.evidence textworld-tiny --ablations   without retrieval, without reasoning, without task generation
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer

from flows.planning.load_recipe import load_recipe
from infra.orchestration.embedded_prefect import open_prefect
from infra.settings import settings
from models.measurement.intervals import Interval, mean_over_seeds
from schemas.errors import DreamGymError

_COMPARABLE = ("evaluation.panel=pinned",)
"""Changes that give every run the same test tasks."""
ABLATIONS = {
    "full": [],
    "without retrieval": ["retrieval.num_demonstrations=0"],
    "without reasoning": ["experience.with_reasoning=false"],
    "without task generation": ["curriculum.generate=false"],
}


def evidence(
    recipe: str,
    ablations: Annotated[bool, typer.Option(help="Run the ablations instead of the baseline.")] = False,
    seeds: Annotated[str, typer.Option(help="Comma-separated.")] = "0,1,2",
    unpromoted: Annotated[bool, typer.Option(help="Go on for real from policies that the gate refused, too.")] = True,
    changes: Annotated[list[str] | None, typer.Option("--set", help="section.field=value")] = None,
) -> None:
    """Run all variants, or read those that already ran, and print the tables."""
    open_prefect()
    variants = ABLATIONS if ablations else {"full": []}
    going_on = ["real.unpromoted=true"] if unpromoted else []
    rows = [
        _run(recipe, name, int(seed), [*(changes or []), *going_on, *variant], baseline=not ablations)
        for name, variant in variants.items()
        for seed in seeds.split(",")
    ]
    path = settings().home / ("ablations.json" if ablations else "evidence.json")
    Path(path).write_text(json.dumps(rows, indent=1))
    typer.echo(markdown(rows))
    typer.echo(f"\n{families_markdown(rows)}\n\n{fidelity_markdown(rows)}")
    typer.echo(f"written to {path}", err=True)


def _run(recipe: str, name: str, seed: int, changes: list[str], *, baseline: bool) -> dict[str, Any]:
    from flows.running.results import DREAM_TRAINING, training_seconds
    from flows.running.run_recipe import run_real_only, run_recipe
    from flows.stage import Stage
    from infra.progress.progress import Display

    loaded = load_recipe(recipe, [*_COMPARABLE, *changes, f"seed={seed}"])
    display = Display()
    display.say(f"{recipe}, {name}, seed {seed}")
    summary = run_recipe(loaded, Stage.REAL, display)
    row = {
        "variant": name,
        "seed": seed,
        "run": summary["run_id"],
        **summary["results"],
        "gain": summary["gate"]["gain"],
        "families": summary["gate"]["families"],
        "fidelity": summary["fidelity"],
        "training_seconds": training_seconds(summary["stage_seconds"], DREAM_TRAINING),
    }
    if baseline:
        row["real_only"] = run_real_only(loaded, summary, display)
    return row


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the runs and their mean as a Markdown table; shares in percent, 95% intervals."""
    columns = ("variant", "seed", *_COLUMNS)
    lines = [markdown_line(columns), markdown_line("---" for _ in columns)]
    for variant in dict.fromkeys(row["variant"] for row in rows):
        runs = [row for row in rows if row["variant"] == variant]
        lines += [markdown_line(_cells(row)) for row in runs]
        if len(runs) > 1:
            lines.append(markdown_line(_mean_cells(variant, runs)))
    return "\n".join(lines)


def families_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return real success by family of tasks, averaged over the runs of each variant; shares in percent."""
    columns = ("variant", "family", "tasks", "start", "dream training", "gain")
    lines = [markdown_line(columns), markdown_line("---" for _ in columns)]
    for variant in dict.fromkeys(row["variant"] for row in rows):
        runs = [row["families"] for row in rows if row["variant"] == variant]
        for family in runs[0]:
            start, dream = (mean(run[family][policy] for run in runs) for policy in ("baseline", "candidate"))
            num_tasks, gain = runs[0][family]["num_tasks"], f"{100 * (dream - start):+z.1f}"
            lines.append(markdown_line([variant, family, str(num_tasks), as_percent(start), as_percent(dream), gain]))
    return "\n".join(lines)


def fidelity_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the fidelity of each run's experience model on data it was not fitted on, in percent.

    First teacher-forced, on the starting policy's own steps on valid tasks; then on whole dreams of the candidate on
    test tasks.
    """
    columns = ("variant", "seed", *_FIDELITY.values(), "dreamt states hold", "dreamt outcomes hold")
    lines = [markdown_line(columns), markdown_line("---" for _ in columns)]
    for row in rows:
        measured = [as_percent(row["fidelity"].get(name)) for name in _FIDELITY]
        dreamt = [as_percent(row[f"{what}_agreement"]) for what in ("state", "outcome")]
        lines.append(markdown_line([row["variant"], str(row["seed"]), *measured, *dreamt]))
    return "\n".join(lines)


_FIDELITY = {
    "state_exact": "states exact",
    "success_precision": "reward precision",
    "success_recall": "reward recall",
    "done_precision": "done precision",
    "done_recall": "done recall",
    "loss_recall": "losses seen",
    "unparsable": "unparsable",
}


def markdown_line(cells: Iterable[str]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def _at(row: Any, path: Sequence[str]) -> Any:
    for key in path:
        if row is not None:
            row = row.get(key)
    return row


def as_gain(gain: Interval) -> str:
    """Return a gain in percentage points with its interval."""
    return f"{100 * gain.mean:+z.1f} ({100 * gain.low:+z.1f} to {100 * gain.high:+z.1f})"


def as_percent(share: float | None) -> str:
    """Return a share in percent, or nothing if it is not known."""
    return "" if share is None else f"{100 * share:.1f}"


def as_seconds(seconds: float | None) -> str:
    """Return a duration in whole seconds, or nothing if it is not known."""
    return "" if seconds is None else f"{seconds:,.0f}"


def _with_steps(policy: dict[str, Any]) -> str:
    return f"{as_percent(policy['real_success'])} ({policy['real_interactions']:,} steps)"


_COLUMNS: dict[str, tuple[tuple[str, ...], Callable[[float | None], str]]] = {
    "start": (("start", "real_success"), as_percent),
    "dream training": (("dream", "real_success"), as_percent),
    "gain": (("gain", "mean"), as_percent),
    "its dream success": (("dream", "dream_success"), as_percent),
    "outcomes agree": (("outcome_agreement",), as_percent),
    "sim-to-real": (("sim_to_real", "real_success"), as_percent),
    "real-only RL": (("real_only", "real_success"), as_percent),
    "training s, dream": (("training_seconds",), as_seconds),
    "real-only": (("real_only", "training_seconds"), as_seconds),
    "all s": (("seconds",), as_seconds),
}
"""Path of each measure in a row, and how to write it; the gain is written with its interval."""


def _cells(row: dict[str, Any]) -> list[str]:
    cells = {heading: write(_at(row, path)) for heading, (path, write) in _COLUMNS.items()}
    cells["gain"] = as_gain(Interval(**row["gain"]))
    cells["sim-to-real"] = _with_steps(row["sim_to_real"]) if "sim_to_real" in row else "refused by the gate"
    cells["real-only RL"] = _with_steps(row["real_only"]) if "real_only" in row else ""
    return [row["variant"], str(row["seed"]), *cells.values()]


def _mean_cells(variant: str, runs: Sequence[dict[str, Any]]) -> list[str]:
    cells: dict[str, str] = {}
    for heading, (path, write) in _COLUMNS.items():
        values = [_at(row, path) for row in runs]
        cells[heading] = write(None if None in values else mean(values))
    cells["gain"] = as_gain(mean_over_seeds([row["gain"]["mean"] for row in runs]))
    return [variant, "mean", *cells.values()]


if __name__ == "__main__":
    try:
        typer.run(evidence)
    except DreamGymError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(error.exit_code) from None
