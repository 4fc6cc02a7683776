"""Make a finished run the current one, so that what it made can be loaded and used."""

from infra.context import RunContext, set_run_context
from infra.progress.progress import Display
from infra.settings import settings
from infra.tracking.tracker import Tracker
from schemas.recipes.recipe import Recipe, stored_recipe
from schemas.runs import Record


def reopen_run(record: Record, display: Display) -> Recipe:
    """Set the context of a finished run, whose status stays as it is, and return its recipe.

    Args:
        record: Record of the run.
        display: Shows progress.

    Raises:
        StorageError: MLflow cannot be used.
    """
    run_id, recipe = record["run_id"], stored_recipe(record["recipe"])
    set_run_context(RunContext(run_id, recipe.digest, Tracker(settings(), run_id, {}, reopen=False), display))
    return recipe
