"""Digests of plain data and of recipes, the basis of cache keys and lineage.

A section of a recipe counts by the fields that differ from its recorded defaults (recorded_defaults.json). A new
field at its default therefore changes no digest, while a changed default of an old field does. Record the defaults of
new fields with `python -m schemas.recipes.digests`. A recorded default never changes; otherwise results of old runs
would be reused for values that they were not computed with.
"""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

SECTION_MODULES = tuple(
    f"schemas.recipes.{name}"
    for name in ("recipe", "data", "environments", "judging", "learning", "methods", "networks", "policy", "section")
)
"""Modules that define the sections of a recipe."""
_RECORD = Path(__file__).with_name("recorded_defaults.json")


def digest_of(value: BaseModel | dict[str, Any] | list[Any] | str | int) -> str:
    """Return the sha256 of a section or of plain data, independent of key order."""
    plain = changed_fields(value) if isinstance(value, BaseModel) else value
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def changed_fields(section: BaseModel) -> dict[str, Any]:
    """Return a section's fields that differ from the recorded defaults, as plain data; nested sections likewise.

    Options of a method count as they are given: their defaults are part of the method's code.
    """
    recorded = recorded_defaults().get(type(section).__name__, {})
    defaults = default_values(type(section)) | recorded
    fields = type(section).model_fields
    plain = {field.alias or name: _plain(getattr(section, name)) for name, field in fields.items()}
    plain |= section.model_extra or {}
    return {name: value for name, value in plain.items() if name not in defaults or value != defaults[name]}


def default_values(section: type[BaseModel]) -> dict[str, Any]:
    """Return the defaults in the code, as plain data; required fields have none."""
    fields = section.model_fields
    optional = {field.alias or name: field for name, field in fields.items() if not field.is_required()}
    return {name: _plain(field.get_default()) for name, field in optional.items()}


def _plain(value: Any) -> Any:
    """Return a value as JSON data; a section as its changed fields plus its class, as a field may take several."""
    if isinstance(value, BaseModel):
        return changed_fields(value) | {"class": type(value).__name__}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


@lru_cache
def recorded_defaults() -> dict[str, dict[str, Any]]:
    """Return defaults by class and field, as they were when each field was added."""
    return json.loads(_RECORD.read_text()) if _RECORD.exists() else {}


def unrecorded() -> dict[str, dict[str, Any]]:
    """Return the defaults of fields that the record lacks, by class."""
    from schemas.recipes.recipe import Recipe

    found: dict[str, dict[str, Any]] = {}
    for section in sections_of(Recipe):
        known = recorded_defaults().get(section.__name__, {})
        if new := {name: value for name, value in default_values(section).items() if name not in known}:
            found[section.__name__] = new
    return found


def sections_of(recipe: type[BaseModel]) -> list[type[BaseModel]]:
    """Return every section class of a recipe, including the recipe itself."""
    base = next(one for one in recipe.__mro__ if one.__name__ == "Section")
    found: list[type[BaseModel]] = []
    waiting = base.__subclasses__()
    while waiting:
        section = waiting.pop()
        found.append(section)
        waiting += section.__subclasses__()
    return [one for one in found if one.__module__ in SECTION_MODULES]


def _record() -> None:
    """Add missing defaults to the record; recorded ones stay."""
    new = unrecorded()
    merged = {name: recorded_defaults().get(name, {}) | new.get(name, {}) for name in recorded_defaults() | new}
    _RECORD.write_text(json.dumps(merged, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    _record()
