"""Recipes as runs of earlier versions stored them: fields that were replaced since are left out."""

from typing import Any

from schemas.recipes.recipe import Recipe

_REPLACED = {"gate": ("champion_margin",)}
"""By section."""


def stored_recipe(plain: dict[str, Any]) -> Recipe:
    """The recipe of a stored run.

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
