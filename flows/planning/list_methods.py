"""Methods that a recipe can name, by port: built-in ones, and those of other packages."""

import inspect
from typing import Any

from rich.console import Console
from rich.table import Table

from models.methods.method import FOLDERS, built_in_names, method_class, strangers
from schemas.recipes.methods import MethodRecipe

_BUILT_IN = "built-in"


def known_methods() -> list[dict[str, str]]:
    """Return port, name, summary and source of each method; one that cannot be imported says why."""
    return [
        {"port": port, "name": name, "summary": _summary(port, name), "source": source}
        for port in FOLDERS
        for name, source in sorted({**_strangers(port), **dict.fromkeys(built_in_names(port), _BUILT_IN)}.items())
    ]


def _strangers(port: str) -> dict[str, str]:
    points = strangers(port).items()
    return {name: f"{point.dist.name} {point.dist.version}" if point.dist else point.value for name, point in points}


def _summary(port: str, name: str) -> str:
    try:
        found = method_class(recipe_of(port, name))
    except Exception as error:
        return f"cannot be imported: {error}"
    return (inspect.getdoc(found) or "").partition("\n")[0]


def recipe_of(port: str, name: str) -> MethodRecipe:
    """Return the section that names a method of a port."""
    kind = next(one for one in MethodRecipe.__subclasses__() if one.port == port)
    return kind(name=name)


def print_methods(known: list[dict[str, Any]]) -> None:
    """Print a table of methods."""
    table = Table(box=None)
    for column in ("port", "name"):
        table.add_column(column, no_wrap=True)
    table.add_column("summary")
    for one in known:
        source = "" if one["source"] == _BUILT_IN else f" ({one['source']})"
        table.add_row(one["port"], one["name"], one["summary"] + source)
    Console().print(table)
