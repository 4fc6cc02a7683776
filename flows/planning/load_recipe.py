"""Load a recipe: a shipped one by name, or a TOML file, changed by `--set a.b=c`."""

import tomllib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from schemas.errors import RecipeError
from schemas.recipes.recipe import Recipe

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

SHIPPED = Path(__file__).parent.parent / "recipes"


def load_recipe(name_or_path: str, changes: Sequence[str] = ()) -> Recipe:
    """Return a recipe with changes applied.

    Raises:
        RecipeError: no such recipe, invalid TOML, an unknown field or an invalid value; the message names it.
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
        raise RecipeError(f"{path.name}: {'; '.join(map(_problem, error.errors()))}") from None


def _path(name_or_path: str) -> Path:
    for path in (Path(name_or_path), SHIPPED / f"{name_or_path}.toml"):
        if path.is_file():
            return path
    shipped = sorted(path.stem for path in SHIPPED.glob("*.toml"))
    meant = did_you_mean(name_or_path, shipped)
    raise RecipeError(f"no recipe {name_or_path!r}{meant}: give a TOML file, or one of {', '.join(shipped)}")


def _problem(error: "ErrorDetails") -> str:
    """Return what is wrong with a field, and the field that was probably meant."""
    where = [str(part) for part in error["loc"]]
    problem = error["msg"]
    if error["type"] == "extra_forbidden":
        problem = f"no such field{did_you_mean(where[-1], _fields_of(where[:-1]))}"
    return f"{'.'.join(where)}: {problem} (got {error['input']!r:.60})"


def _fields_of(sections: list[str]) -> list[str]:
    """Return the fields of a section of a recipe; of a section of several kinds, those of all kinds."""
    kinds: list[type[BaseModel]] = [Recipe]
    for name in sections:
        found = [kind.model_fields[name].annotation for kind in kinds if name in kind.model_fields]
        inner = [section for annotation in found for section in _sections_in(annotation)]
        kinds = inner or kinds  # pydantic names the kind of a section, too, which is no field
    return [name for kind in kinds for name in kind.model_fields]


def _sections_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _sections_in(inner)


def did_you_mean(given: str, known: Sequence[str]) -> str:
    """Return ` (did you mean X?)` where a known name is close; else nothing."""
    close = get_close_matches(given, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _set(plain: dict[str, Any], change: str) -> None:
    """Apply `a.b=c`; c is parsed as TOML, or else taken as text."""
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
