"""Extent of a run: its stages and rounds, and the time that it took last time."""

from flows.stage import Stage
from infra.progress.progress_views import duration
from infra.storage.run_records import records
from schemas.recipes.recipe import Recipe


def extent_of(recipe: Recipe, until: Stage) -> str:
    """Return the number of stages and rounds of a run up to a stage, and about how long it takes, as text."""
    stages = until.place + 1
    counts = [f"{stages} stage{'s' * (stages > 1)}"]
    if rounds := _num_rounds(recipe, until):
        counts.append(f"{rounds} round{'s' * (rounds > 1)}")
    seconds = seconds_last_time(recipe, until)
    estimate = f"about {duration(seconds)}, as last time" if seconds else "no run of it ran here yet"
    return ", ".join([*counts, estimate])


def seconds_last_time(recipe: Recipe, until: Stage = Stage.INGEST) -> float | None:
    """Return the seconds that the latest run of this recipe's name took in this home; None if there was none.

    Args:
        recipe: Recipe.
        until: Stage that the run must have reached.
    """
    mine = [one for one in records() if one["recipe"]["name"] == recipe.name and "results" in one]
    took = [one["results"]["seconds"] for one in mine if Stage(one["reached"]).place >= until.place]
    return took[-1] if took else None


def _num_rounds(recipe: Recipe, until: Stage) -> int:
    """Return the number of training rounds, in the dream and for real."""
    dreamt = recipe.dream.num_rounds if until.place >= Stage.DREAM.place else 0
    return dreamt + (recipe.real.num_rounds if until is Stage.REAL else 0)
