"""Load a recipe: a shipped one by name, or a TOML file, changed by `--set a.b=c` or by values."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from flows.planning.problems import did_you_mean, problem
from schemas.errors import RecipeError
from schemas.recipes.recipe import Recipe

SHIPPED = Path(__file__).parent.parent / "recipes"


def load_recipe(name_or_path: str, changes: Sequence[str] | Mapping[str, Any] = ()) -> Recipe:
    """Return a recipe with changes applied; the options of its methods are not checked yet (see require_methods).

    Args:
        name_or_path: Name of a shipped recipe, or a TOML file.
        changes: Texts such as `rl.group_size=4`, or values by dotted name.

    Raises:
        RecipeError: no such recipe, invalid TOML, an unknown field or an invalid value; the message names it.
    """
    path = _path(name_or_path)
    try:
        plain = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} is not TOML: {error}") from error
    named = changes.items() if isinstance(changes, Mapping) else map(_parsed, changes)
    for dotted, value in named:
        _set(plain, dotted, value)
    try:
        return Recipe.model_validate(plain)
    except ValidationError as error:
        problems = "; ".join(problem(one, [Recipe]) for one in error.errors())
        raise RecipeError(f"{path.name}: {problems}") from None


def _path(name_or_path: str) -> Path:
    for path in (Path(name_or_path), SHIPPED / f"{name_or_path}.toml"):
        if path.is_file():
            return path
    shipped = sorted(path.stem for path in SHIPPED.glob("*.toml"))
    meant = did_you_mean(name_or_path, shipped)
    raise RecipeError(f"no recipe {name_or_path!r}{meant}: give a TOML file, or one of {', '.join(shipped)}")


def _parsed(change: str) -> tuple[str, Any]:
    """Split `a.b=c`; c is parsed as TOML, or else taken as text."""
    dotted, equals, text = change.partition("=")
    if not equals:
        raise RecipeError(f"--set {change!r}: write it as section.field=value")
    try:
        return dotted.strip(), tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return dotted.strip(), text


def _set(plain: dict[str, Any], dotted: str, value: Any) -> None:
    *sections, field = dotted.split(".")
    for section in sections:
        plain = plain.setdefault(section, {})
        if not isinstance(plain, dict):
            raise RecipeError(f"--set {dotted}: {section} is not a section")
    plain[field] = value
