"""Compare learning methods in the real environment, where no dream can err, or in dreams: a row per method, recipe and seed.

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
from schemas.records import Origin
from tasks.running.device import device_name

ROWS = SHIPPED / "methods"
ASKED = ROWS / "methods.toml"
_COLUMNS = ("recipe", "trained in", "method", "seeds", "episodes", "start", "after", "gain", "training s")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods that are tried on the same recipe in the same way."""

    name: str
    recipe: str
    num_rounds: int
    changes: list[str]
    methods: list[str]
    origin: Origin = "real"
    """Kind of the episodes that the policy is trained on."""

    def recipe_of(self, changes: list[str], seed: int) -> Recipe:
        """Return the recipe of a method with these changes."""
        dreams = [f"dream.num_rounds={self.num_rounds}"] if self.origin == "dream" else []
        return load_recipe(self.recipe, [*self.changes, *changes, *dreams, f"seed={seed}"])

    def key_of(self, changes: list[str], seed: int) -> str:
        """Return the digest that tells whether a stored row is that of a method with these changes."""
        return digest_of([digest_of(self.recipe_of(changes, seed)), self.num_rounds])


@dataclass(frozen=True, slots=True)
class Row:
    """Result of one method on held-out tasks of one recipe, with one seed: valid tasks, or test tasks after dreams."""

    recipe: str
    """Name of the comparison: a recipe's, or one of its own."""
    method: str
    seed: int
    changes: list[str]
    key: str
    """Digest of the recipe with its changes, and of the number of rounds."""
    commit: str
    num_rounds: int
    num_episodes: int
    """Number of episodes that the policy was trained on."""
    num_steps: int
    """Number of real steps among them."""
    seconds: float
    """Duration of rollouts and updates; a round that was taken over from another row of the same home counts nothing."""
    before: list[float]
    """Real success of the starting policy by task, in their order."""
    after: list[float]
    """Real success of the policy after the last round; after dreams, of the one that did best on valid tasks."""
    origin: Origin = "real"
    """Kind of the episodes that the policy was trained on."""
    outcome_agreement: float | None = None
    """Share of dreamt outcomes that held when their actions were replayed for real."""
    device: str = ""
    """Processor or GPU; rows of different ones may begin with different policies. Empty: made before it was noted."""


def try_methods(
    method: Annotated[
        list[str] | None, typer.Option(help="This one instead of a recipe's own; may be repeated.")
    ] = None,
    recipe: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated.")] = None,
    seeds: Annotated[str, typer.Option(help="Comma-separated.")] = "0",
) -> None:
    """Run all rows that are missing, and print the table of all that are there."""
    known = tomllib.loads(ASKED.read_text())["methods"]
    if unknown := set(method or ()) - set(known):
        raise typer.BadParameter(f"no method {sorted(unknown)}: there are {', '.join(known)}")
    for comparison in comparisons():
        if not recipe or comparison.name in recipe:
            for title in method or comparison.methods:
                for seed in map(int, seeds.split(",")):
                    run_row(comparison, title, known[title], seed)
    typer.echo(markdown(stored_rows()))


def comparisons() -> list[Comparison]:
    """Return what is compared, as `methods.toml` says."""
    return [
        Comparison(**{"name": name, "recipe": name, **fields})
        for name, fields in tomllib.loads(ASKED.read_text())["recipes"].items()
    ]


def run_row(comparison: Comparison, method: str, changes: list[str], seed: int) -> None:
    """Run the row of a method with one seed unless it is there."""
    recipe, key = comparison.recipe_of(changes, seed), comparison.key_of(changes, seed)
    path = ROWS / f"{comparison.name}-{method.lower().replace(',', '').replace(' ', '-')}-{seed}.json"
    if path.exists() and json.loads(path.read_text())["key"] == key:
        return
    typer.echo(f"{comparison.name}, {method}, seed {seed}", err=True)
    trained = (
        _dreamt(recipe)
        if comparison.origin == "dream"
        else trained_for_real(recipe, f"try-{path.stem}-{key[:8]}", comparison.num_rounds)
    )
    made = {"key": key, "commit": git_commit(), "device": device_name(), "num_rounds": comparison.num_rounds}
    row = Row(comparison.name, method, seed, [*comparison.changes, *changes], **made, **trained)
    path.write_text(json.dumps(asdict(row)) + "\n")


def trained_for_real(recipe: Recipe, run_id: str, num_rounds: int) -> dict[str, Any]:
    """Train from the start of a recipe in the real environment, and return what came of it."""
    open_prefect()
    from flows.loop.fine_tune import real_training
    from flows.run_session import run_session
    from flows.running.results import REAL_TRAINING, training_seconds
    from flows.running.run_flow import run_flow
    from infra.progress.progress import Display

    display = Display()
    with run_session(recipe, run_id, display):
        trained = run_flow(real_training.with_options(flow_run_name=run_id), recipe, num_rounds)
    return {**trained, "seconds": training_seconds(display.time.stage_seconds, REAL_TRAINING)}


def _dreamt(recipe: Recipe) -> dict[str, Any]:
    """Run a recipe until its policy has trained in the dream and is evaluated, and return what came of it."""
    open_prefect()
    from flows.reports.compare_runs import successes_of
    from flows.running.results import DREAM_TRAINING, training_seconds
    from flows.running.run_recipe import run_recipe
    from flows.stage import Stage
    from infra.progress.progress import Display

    summary = run_recipe(recipe, Stage.EVALUATE, Display())
    successes, dreams = successes_of(summary), summary["lineage"]["dreams"]
    return {
        "origin": "dream",
        "num_episodes": sum(one["__reference__"]["notes"]["num_episodes"] for one in dreams),
        "num_steps": summary["results"]["dream"]["real_interactions"],
        "seconds": training_seconds(summary["stage_seconds"], DREAM_TRAINING),
        "before": list(successes["start"].values()),
        "after": list(successes["dream"].values()),
        "outcome_agreement": summary["results"]["outcome_agreement"],
    }


def stored_rows() -> list[Row]:
    """Return all rows, in the order of their files."""
    return [Row(**json.loads(path.read_text())) for path in sorted(ROWS.glob("*.json"))]


def markdown(rows: list[Row]) -> str:
    """Return the rows as a Markdown table, the seeds of a method in one line; shares in percent, 95% intervals."""
    grouped: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row.recipe, row.origin, row.method), []).append(row)
    lines = [_COLUMNS, ["---"] * len(_COLUMNS), *(_cells(*name, seeds) for name, seeds in grouped.items())]
    return "\n".join(map(markdown_line, lines))


def _cells(recipe: str, origin: str, method: str, rows: list[Row]) -> list[str]:
    return [
        recipe,
        origin,
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
