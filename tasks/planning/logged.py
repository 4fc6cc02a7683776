"""Logged episodes that a recipe imports, read before anything runs."""

from functools import lru_cache
from pathlib import Path

from schemas.recipes.data import IngestRecipe
from schemas.records import Trajectory
from tasks.logs.read_log import read_log
from tasks.logs.sources.files import log_files


def logged_episodes(recipe: IngestRecipe) -> list[Trajectory]:
    """Return the distinct episodes in the files of a recipe, whether or not its environment knows their tasks.

    Raises:
        DataError: there are no such files, or they hold no transitions.
    """
    return _read(recipe.path, tuple(log_files(recipe.path).items()))


@lru_cache(maxsize=1)
def _read(path: str, digests: tuple[tuple[str, str], ...]) -> list[Trajectory]:
    return read_log(Path(path)).trajectories
