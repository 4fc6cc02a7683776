"""Load a recipe: a shipped one by name, or a TOML file, with `--set a.b=c` on top."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from schemas.errors import RecipeError
from schemas.recipes.recipe import Recipe

SHIPPED = Path(__file__).parent.parent / "recipes"


def load_recipe(name_or_path: str, changes: Sequence[str] = ()) -> Recipe:
    """The recipe with its changes.

    Raises:
        RecipeError: no such recipe, no TOML, an unknown field, a value that does not fit; it names which.
    """
    path = _path(name_or_path)
    try:
        plain = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} is not TOML: {error}") from error
    for change in changes:
        _set(plain, change)
    try:
        return Recipe.model_validate(plain)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, e['loc']))}: {e['msg']} (got {e['input']!r:.60})" for e in error.errors()
        )
        raise RecipeError(f"{path.name}: {problems}") from None


def _path(name_or_path: str) -> Path:
    for path in (Path(name_or_path), SHIPPED / f"{name_or_path}.toml"):
        if path.is_file():
            return path
    shipped = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.toml")))
    raise RecipeError(f"no recipe {name_or_path!r}: give a TOML file, or one of {shipped}")


def _set(plain: dict[str, Any], change: str) -> None:
    """Apply `a.b=c`; c is read as TOML, or else as text."""
    dotted, equals, text = change.partition("=")
    if not equals:
        raise RecipeError(f"--set {change!r}: write it as section.field=value")
    *sections, field = dotted.strip().split(".")
    for section in sections:
        plain = plain.setdefault(section, {})
        if not isinstance(plain, dict):
            raise RecipeError(f"--set {change!r}: {section} is not a section")
    try:
        plain[field] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        plain[field] = text
