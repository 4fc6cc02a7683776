"""Sentences for what is wrong with the fields of a recipe, with the name that was probably meant."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def problem(error: "ErrorDetails", sections: Sequence[type[BaseModel]], path: str = "") -> str:
    """Return what is wrong with a field, and the field that was probably meant.

    Args:
        error: Error of pydantic's.
        sections: Kinds of section that were validated.
        path: Dotted path of the section, if it is not a whole recipe.
    """
    where = [str(part) for part in error["loc"]]
    found = error["msg"]
    if error["type"] == "extra_forbidden":
        found = f"no such field{did_you_mean(where[-1], _fields_of(where[:-1], sections))}"
    dotted = ".".join([*filter(None, [path]), *where])
    return f"{dotted}: {found} (got {error['input']!r:.60})" if dotted else found


def _fields_of(names: list[str], sections: Sequence[type[BaseModel]]) -> list[str]:
    """Return the fields of a section within others; of a section of several kinds, those of all kinds."""
    kinds = list(sections)
    for name in names:
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
