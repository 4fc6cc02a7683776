"""Which real environments there are, by the name that recipes use. Each is imported when it is asked for."""

from functools import lru_cache
from importlib.util import find_spec

from schemas.environments import AlfworldRecipe
from schemas.errors import InputError
from schemas.ports import Annotator, RealEnvironment
from schemas.recipe import EnvironmentRecipe


def open_environment(recipe: EnvironmentRecipe) -> RealEnvironment:
    """The environment that a recipe names, with its families of tasks.

    One that has processes of its own is the same for the same recipe, and plays one rollout at a time.
    """
    if isinstance(recipe, AlfworldRecipe):
        return _open_alfworld(recipe.model_dump_json())
    from infra.environments.cooking.environment import CookingEnvironment

    return CookingEnvironment(
        {name: {**family.model_dump(), "take": family.recipe} for name, family in recipe.families.items()}
    )


@lru_cache(maxsize=1)
def _open_alfworld(recipe: str) -> RealEnvironment:
    _require("alfworld", "alfworld")
    from infra.environments.alfworld.environment import AlfworldEnvironment

    return AlfworldEnvironment(AlfworldRecipe.model_validate_json(recipe))


def _require(package: str, extra: str) -> None:
    if find_spec(package) is None:
        raise InputError(f"this environment needs the package {package}: pip install 'dreamgym[{extra}]'")


def annotator_of_facts(recipe: EnvironmentRecipe) -> Annotator:
    """The annotator that knows this environment's own rules."""
    if isinstance(recipe, AlfworldRecipe):
        from infra.environments.alfworld.annotator import AlfworldAnnotator

        return AlfworldAnnotator()
    from infra.environments.cooking.annotator import CookingAnnotator

    return CookingAnnotator()
