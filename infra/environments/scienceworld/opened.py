"""Open ScienceWorld, if its package and Java are installed."""

from functools import lru_cache
from importlib.util import find_spec
from shutil import which

from schemas.errors import InputError
from schemas.ports import RealEnvironment
from schemas.recipes.environments import ScienceworldRecipe


@lru_cache(maxsize=1)
def open_environment(recipe: ScienceworldRecipe) -> RealEnvironment:
    """Return the environment, the same object for the same recipe.

    Raises:
        InputError: If the package or Java is missing.
    """
    if find_spec("scienceworld") is None:
        raise InputError("environment 'scienceworld' needs a package: pip install 'dreamgym[scienceworld]'")
    if which("java") is None:
        raise InputError("environment 'scienceworld' needs Java: apt-get install default-jre-headless")
    from infra.environments.scienceworld.environment import ScienceworldEnvironment

    return ScienceworldEnvironment(recipe)
