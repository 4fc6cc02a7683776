"""References in plain data, as JSON and back: the format of stored task results and of a run's lineage."""

from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from typing import Any

from schemas.records import Reference

_REFERENCE = "__reference__"


def plain(value: Any) -> Any:
    """Return references and records as JSON data; `restored` is the inverse."""
    if isinstance(value, Reference):
        return {_REFERENCE: asdict(value)}
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def restored(value: Any) -> Any:
    """Return JSON data with its references restored; the inverse of `plain`."""
    if isinstance(value, dict) and _REFERENCE in value:
        return Reference(**value[_REFERENCE])
    if isinstance(value, dict):
        return {key: restored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [restored(item) for item in value]
    return value


def references_in(value: Any) -> Iterator[Reference]:
    """Yield every reference in nested data."""
    if isinstance(value, Reference):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from references_in(item)
