"""Recipes as stored by runs of earlier versions; fields that have been replaced are dropped."""

from typing import Any

from schemas.recipes.recipe import Recipe

_REPLACED = {"gate": ("champion_margin",)}
"""Replaced fields by section."""


def stored_recipe(plain: dict[str, Any]) -> Recipe:
    """Return the recipe of a stored run.

    Raises:
        ValidationError: it has fields that no version knew.
    """
    kept = {
        section: {name: one for name, one in value.items() if name not in _REPLACED[section]}
        if section in _REPLACED
        else value
        for section, value in plain.items()
    }
    return Recipe.model_validate(kept)
