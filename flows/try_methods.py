"""Compare learning methods in the real environment, where no dream can err: a row per method, recipe and seed.

python -m flows.try_methods                                        run what is missing, one seed each; print the table
python -m flows.try_methods --method GRPO --seeds 0,1,2            only these

A row is a JSON file in flows/recipes/methods. It is not run again while the recipe and its changes are the same.
"""

import json
import tomllib
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Annotated, Any

import typer

from flows.evidence import as_gain, as_percent, as_seconds, markdown_line
from flows.planning.load_recipe import SHIPPED, load_recipe
from infra.orchestration.embedded_prefect import open_prefect
from infra.tracking.code_tags import git_commit
from models.measurement.intervals import Interval, paired_gain
from schemas.errors import DreamGymError
from schemas.recipes.digests import digest_of
from schemas.recipes.recipe import Recipe

ROWS = SHIPPED / "methods"
_COLUMNS = ("recipe", "method", "seeds", "real episodes", "start", "after", "gain", "training s")


@dataclass(frozen=True, slots=True)
class Row:
    """Result of one method on the valid tasks of one recipe, with one seed."""

    recipe: str
    method: str
    seed: int
    changes: list[str]
    key: str
    """Digest of the recipe with its changes, and of the number of rounds."""
    commit: str
    num_rounds: int
    num_episodes: int
    num_steps: int
    seconds: float
    """Duration of rollouts and updates."""
    before: list[float]
    """Success of the starting policy by valid task, in their order."""
    after: list[float]
    """Success of the policy after the last round."""


def try_methods(
    method: Annotated[
        list[str] | None, typer.Option(help="This one instead of a recipe's own; may be repeated.")
    ] = None,
    recipe: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    seeds: Annotated[str, typer.Option(help="Comma-separated.")] = "0",
) -> None:
    """Run all rows that are missing, and print the table of all that are there."""
    asked = tomllib.loads((ROWS / "methods.toml").read_text())
    if unknown := set(method or ()) - set(asked["methods"]):
        raise typer.BadParameter(f"no method {sorted(unknown)}: there are {', '.join(asked['methods'])}")
    for name, base in asked["recipes"].items():
        for title in method or base.get("methods", asked["methods"]):
            if not recipe or name in recipe:
                for seed in map(int, seeds.split(",")):
                    run_row(name, title, seed, [*base["changes"], *asked["methods"][title]], base["num_rounds"])
    typer.echo(markdown(stored_rows()))


def run_row(name: str, method: str, seed: int, changes: list[str], num_rounds: int) -> None:
    """Run a row unless it is there."""
    recipe = load_recipe(name, [*changes, f"seed={seed}"])
    key = digest_of([digest_of(recipe), num_rounds])
    path = ROWS / f"{name}-{method.lower().replace(',', '').replace(' ', '-')}-{seed}.json"
    if path.exists() and json.loads(path.read_text())["key"] == key:
        return
    typer.echo(f"{name}, {method}, seed {seed}", err=True)
    measured = _measured(recipe, f"try-{path.stem}-{key[:8]}", num_rounds)
    row = Row(name, method, seed, changes, key, git_commit(), num_rounds, **measured)
    path.write_text(json.dumps(asdict(row)) + "\n")


def _measured(recipe: Recipe, run_id: str, num_rounds: int) -> dict[str, Any]:
    """Train from the start of a recipe in the real environment, and return what came of it."""
    open_prefect()
    from flows.loop.fine_tune import real_training
    from flows.loop.run_session import run_session
    from flows.running.results import REAL_TRAINING, training_seconds
    from infra.tracking.progress import Display

    display = Display()
    with run_session(recipe, run_id, display):
        trained = real_training.with_options(flow_run_name=run_id)(recipe, num_rounds)
    return {**trained, "seconds": training_seconds(display.time.stage_seconds, REAL_TRAINING)}


def stored_rows() -> list[Row]:
    """Return all rows, in the order of their files."""
    return [Row(**json.loads(path.read_text())) for path in sorted(ROWS.glob("*.json"))]


def markdown(rows: list[Row]) -> str:
    """Return the rows as a Markdown table, the seeds of a method in one line; shares in percent, 95% intervals."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row.recipe, row.method), []).append(row)
    lines = [_COLUMNS, ["---"] * len(_COLUMNS), *(_cells(*name, seeds) for name, seeds in grouped.items())]
    return "\n".join(map(markdown_line, lines))


def _cells(recipe: str, method: str, rows: list[Row]) -> list[str]:
    return [
        recipe,
        method,
        ", ".join(str(row.seed) for row in rows),
        f"{rows[0].num_episodes:,}",
        as_percent(fmean(fmean(row.before) for row in rows)),
        as_percent(fmean(fmean(row.after) for row in rows)),
        as_gain(_gain(rows)),
        as_seconds(fmean(row.seconds for row in rows)),
    ]


def _gain(rows: list[Row]) -> Interval:
    """Return the gain over the start, paired by task; over tasks, each with the mean of its seeds."""
    after, before = (
        [fmean(seeds) for seeds in zip(*of_each, strict=True)]
        for of_each in ([row.after for row in rows], [row.before for row in rows])
    )
    return paired_gain(after, before)


if __name__ == "__main__":
    try:
        typer.run(try_methods)
    except DreamGymError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(error.exit_code) from None
