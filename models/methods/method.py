"""Base of all methods, and how one is found by the name that a recipe gives.

A built-in method is the one class in a file of its port's folder; the file is imported when a recipe names it. A method
of another package is an entry point of the group `dreamgym.methods`, called `PORT.NAME`.
"""

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import ValidationError

from schemas.errors import RecipeError
from schemas.ports import Progress
from schemas.recipes.methods import MethodRecipe
from schemas.recipes.section import Section

GROUP = "dreamgym.methods"
FOLDERS = {
    "reward": "models.methods.rewards",
    "grouping": "models.methods.groupings",
    "advantage": "models.methods.advantages",
    "replay": "models.methods.replays",
    "auxiliary": "models.methods.auxiliaries",
    "loss": "models.methods.losses",
    "curriculum": "models.methods.curricula",
    "generator": "models.methods.generators",
    "judge": "models.methods.judges",
    "behaviour": "models.methods.behaviours",
}
"""Package of the built-in methods of each port."""


class NoOptions(Section):
    """Options of a method that has none."""


OptionsT = TypeVar("OptionsT", bound=Section)


class Method(Generic[OptionsT]):
    """A method behind one of the ports; the first line of its docstring is its summary."""

    Options: ClassVar[type[Section]] = NoOptions
    """Section of its options, which is checked when a recipe is loaded."""
    needs: ClassVar[Mapping[str, str]] = {}
    """Name of the method that it needs behind another port, by port."""

    def __init__(self, options: OptionsT) -> None:
        """Create the method with its options."""
        self.options = options


class ReadsProgress:
    """Part of ports whose methods may need to know how far an episode came."""

    needs_progress: ClassVar[bool] = False
    """True if a method can only be used where states tell how far they are towards the goal."""
    progress: Progress | None = None
    """Reader of progress, of environments that have one."""


MethodT = TypeVar("MethodT", bound=Method[Any])


def open_method(port: type[MethodT], recipe: MethodRecipe) -> MethodT:
    """Return the method that a recipe names, with its options.

    Args:
        port: Base class of the methods of the port.
        recipe: Name and options.

    Raises:
        RecipeError: there is no such method, or its options are invalid.
    """
    found = method_class(recipe)
    if not issubclass(found, port):
        raise RecipeError(f"{recipe.port} {recipe.name!r} is no {port.__name__}: {found.__module__}.{found.__name__}")
    try:
        return found(found.Options.model_validate(recipe.options))
    except ValidationError as error:
        raise RecipeError(f"{recipe.port} {recipe.name!r}: {error}") from error


def method_class(recipe: MethodRecipe) -> type[Method[Any]]:
    """Return the class of the method that a recipe names.

    Raises:
        RecipeError: there is no such method.
    """
    if module := _built_in(recipe):
        return _class_in(module)
    points = strangers(recipe.port)
    if recipe.name not in points:
        known = ", ".join(sorted({*built_in_names(recipe.port), *points}))
        raise RecipeError(f"no {recipe.port} {recipe.name!r}: there are {known}")
    return points[recipe.name].load()


def module_of(recipe: MethodRecipe) -> str:
    """Return the module of the method that a recipe names; empty if there is none."""
    if module := _built_in(recipe):
        return module
    point = strangers(recipe.port).get(recipe.name)
    return point.module if point else ""


def built_in_names(port: str) -> list[str]:
    """Return the names of the built-in methods of a port."""
    folder = import_module(FOLDERS[port])
    return sorted(one.name.replace("_", "-") for one in iter_modules(folder.__path__))


def strangers(port: str) -> dict[str, EntryPoint]:
    """Return the methods of a port that other packages provide, by name."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    return {name.removeprefix(f"{port}."): point for name, point in points.items() if name.startswith(f"{port}.")}


def _built_in(recipe: MethodRecipe) -> str:
    module = f"{FOLDERS[recipe.port]}.{recipe.name.replace('-', '_')}"
    return module if recipe.name.replace("-", "").isalnum() and find_spec(module) else ""


def _class_in(module: str) -> type[Method[Any]]:
    (found,) = _classes_in(module)
    return found


def _classes_in(module: str) -> Iterator[type[Method[Any]]]:
    members = vars(import_module(module)).values()
    yield from (one for one in members if inspect.isclass(one) and issubclass(one, Method) and one.__module__ == module)
