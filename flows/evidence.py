"""Evidence: the default recipe over several seeds, its real-only baseline, and its ablations, as tables.

python -m flows.evidence textworld-tiny               seeds 0, 1, 2 and real-only GRPO from the same start
python -m flows.evidence textworld-tiny --ablations   without retrieval, without reasoning, without task generation
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from flows.load_recipe import load_recipe
from infra.embedded import embed_prefect
from infra.settings import settings
from schemas.errors import DreamGymError

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
    changes: Annotated[list[str] | None, typer.Option("--set", help="section.field=value")] = None,
) -> None:
    """Run what is to be shown, or read it where it ran before, and print it."""
    embed_prefect(settings())
    variants = ABLATIONS if ablations else {"full": []}
    rows = [
        _run(recipe, name, int(seed), [*(changes or []), *variant], baseline=not ablations)
        for name, variant in variants.items()
        for seed in seeds.split(",")
    ]
    path = settings().home / ("ablations.json" if ablations else "evidence.json")
    Path(path).write_text(json.dumps(rows, indent=1))
    Console().print(_table(rows))
    Console().print(f"written to {path}")


def _run(recipe: str, name: str, seed: int, changes: list[str], *, baseline: bool) -> dict[str, Any]:
    from flows.cycle import Stage
    from flows.run import run_real_only, run_recipe
    from infra.progress import Display

    loaded = load_recipe(recipe, [*changes, f"seed={seed}"])
    display = Display()
    display.say(f"[bold]{recipe}, {name}, seed {seed}[/]")
    summary = run_recipe(loaded, Stage.REAL, display)
    row = {
        "variant": name,
        "seed": seed,
        "cycle": summary["cycle_id"],
        **summary["results"],
        "gain": summary["gate"]["gain"],
    }
    if baseline:
        row["real_only"] = run_real_only(loaded, summary, display)
    return row


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        "variant",
        "seed",
        "start",
        "dream-only",
        "gain (95%)",
        "dream success",
        "outcomes agree",
        "sim-to-real",
        "real-only",
        "s",
    )
    for row in rows:
        gain = row["gain"]
        table.add_row(
            row["variant"],
            str(row["seed"]),
            _rate(row.get("start")),
            _rate(row.get("dream")),
            f"{gain['mean']:+.1%} ({gain['low']:+.1%} to {gain['high']:+.1%})",
            f"{row['dream']['dream_success']:.1%}",
            f"{row['outcome_agreement']:.1%}",
            _with_steps(row.get("sim_to_real")),
            _with_steps(row.get("real_only")),
            f"{row['seconds']:.0f}",
        )
    return table


def _rate(policy: dict[str, Any] | None) -> str:
    return f"{policy['real_success']:.1%}" if policy else "refused by the gate"


def _with_steps(policy: dict[str, Any] | None) -> str:
    return f"{policy['real_success']:.1%} with {policy['real_interactions']:,} real steps" if policy else ""


if __name__ == "__main__":
    try:
        typer.run(evidence)
    except DreamGymError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(error.exit_code) from None
