"""Open ALFWorld, if its package is installed."""

from functools import lru_cache
from importlib.util import find_spec

from schemas.errors import InputError
from schemas.ports import RealEnvironment
from schemas.recipes.environments import AlfworldRecipe


@lru_cache(maxsize=1)
def open_environment(recipe: AlfworldRecipe) -> RealEnvironment:
    """Return the environment, the same object for the same recipe.

    Raises:
        InputError: If the package is missing.
    """
    if find_spec("alfworld") is None:
        raise InputError("environment 'alfworld' needs a package: pip install 'dreamgym[alfworld]'")
    from infra.environments.alfworld.environment import AlfworldEnvironment

    return AlfworldEnvironment(recipe)
