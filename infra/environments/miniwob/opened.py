"""Open MiniWoB++, if its packages and a browser are installed."""

from functools import lru_cache
from importlib.util import find_spec

from schemas.errors import InputError
from schemas.ports import RealEnvironment
from schemas.recipes.environments import MiniwobRecipe


@lru_cache(maxsize=1)
def open_environment(recipe: MiniwobRecipe) -> RealEnvironment:
    """Return the environment, the same object for the same recipe.

    Raises:
        InputError: If a package or the browser is missing.
    """
    if find_spec("miniwob") is None or find_spec("selenium") is None:
        raise InputError("environment 'miniwob' needs packages: pip install 'dreamgym[miniwob]'")
    from infra.environments.miniwob.browser import require_browser
    from infra.environments.miniwob.environment import MiniwobEnvironment

    require_browser()
    return MiniwobEnvironment(recipe)
