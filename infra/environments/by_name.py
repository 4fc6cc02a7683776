"""Which real environments there are, by the name that recipes use."""

from infra.environments.cooking.annotator import CookingAnnotator
from infra.environments.cooking.environment import CookingEnvironment
from schemas.ports import Annotator, RealEnvironment
from schemas.recipe import EnvironmentRecipe


def open_environment(recipe: EnvironmentRecipe) -> RealEnvironment:
    """The environment that a recipe names, with its families of tasks."""
    return CookingEnvironment(
        {name: {**family.model_dump(), "take": family.recipe} for name, family in recipe.families.items()}
    )


def annotator_of_facts(recipe: EnvironmentRecipe) -> Annotator:
    """The annotator that knows this environment's own rules."""
    return {"textworld-cooking": CookingAnnotator}[recipe.name]()
