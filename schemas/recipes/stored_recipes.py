"""Recipes as stored by runs of earlier versions."""

from typing import Any

from schemas.recipes.former_fields import translated
from schemas.recipes.recipe import Recipe


def stored_recipe(plain: dict[str, Any]) -> Recipe:
    """Return the recipe of a stored run, whose fields may have had other names.

    Raises:
        ValidationError: it has fields that no version knew.
    """
    return Recipe.model_validate(translated(plain))
