"""Open TextWorld's cooking games."""

from infra.environments.cooking.environment import CookingEnvironment
from schemas.recipes.environments import CookingRecipe


def open_environment(recipe: CookingRecipe) -> CookingEnvironment:
    """Return an environment with the recipe's families; each takes as many ingredients as its recipe has."""
    families = {name: family.model_dump() for name, family in recipe.families.items()}
    return CookingEnvironment({name: {**family, "take": family["recipe"]} for name, family in families.items()})
