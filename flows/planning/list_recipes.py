"""Shipped recipes, with the hardware that they are made for and the time they take."""

import tomllib
from typing import Any

from rich.console import Console
from rich.table import Table

from flows.planning.load_recipe import SHIPPED
from schemas.recipes.recipe import Recipe


def shipped_recipes() -> list[dict[str, Any]]:
    """Return name, description, environment, hardware and duration of each shipped recipe."""
    return [_row(Recipe.model_validate(tomllib.loads(path.read_text()))) for path in sorted(SHIPPED.glob("*.toml"))]


def _row(recipe: Recipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "description": recipe.description,
        "environment": recipe.environment.name,
        "hardware": hardware_of(recipe),
        "duration": recipe.duration,
    }


def hardware_of(recipe: Recipe) -> str:
    """Return the hardware that a recipe was made for, in words."""
    return f"{recipe.gpus} GPU{'s' * (recipe.gpus > 1)}" if recipe.gpus else "2 CPU cores"


def print_recipes(rows: list[dict[str, Any]]) -> None:
    """Print a table with one line for each recipe."""
    table = Table(box=None, caption="dreamgym check RECIPE says what one takes here", caption_justify="left")
    for column in ("name", "hardware", "duration"):
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*(row[column] for column in ("name", "hardware", "duration")))
    Console().print(table)
