"""Which real environment a recipe names. Each lies in a package of its own, which is imported when it is asked for.

A built-in package has `opened.py`, `annotator.py` and, where its states list what they accept, `listed.py`. What another
package brings is an entry point: one class that is environment and annotator.

The packages are named by text, so that a task's import closure holds the package of its own recipe and no other
(tasks/running/cache_key.py).
"""

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from schemas.ports import AdmissibleActions, Annotator, RealEnvironment
from schemas.recipes.environments import BaseEnvironment, PluginRecipe, entry_point
from schemas.recipes.recipe import EnvironmentRecipe

_FOLDERS = {"textworld-cooking": "cooking"}
"""Of built-in environments whose folder has another name."""


def open_environment(recipe: EnvironmentRecipe) -> RealEnvironment:
    """The environment that a recipe names, with its families of tasks.

    One that has processes or sessions of its own is the same for the same recipe, and plays one rollout at a time.

    Raises:
        InputError: it cannot be opened here, and what is missing.
    """
    if isinstance(recipe, PluginRecipe):
        return _of_a_package(recipe.model_dump_json())
    return _part(recipe, "opened").open_environment(recipe)


def admissible_actions_of(recipe: EnvironmentRecipe) -> AdmissibleActions | None:
    """How to read what this environment's states accept; None if they do not list it. Nothing has to be installed for it."""
    has_lists = not isinstance(recipe, PluginRecipe) and find_spec(f"{package_of(recipe)}.listed")
    return _part(recipe, "listed").StateLists() if has_lists else None


def annotator_of_facts(recipe: EnvironmentRecipe) -> Annotator:
    """The annotator that knows this environment's own rules; what a package brings is both."""
    if isinstance(recipe, PluginRecipe):
        return _of_a_package(recipe.model_dump_json())
    return _part(recipe, "annotator").FactsAnnotator()


def package_of(recipe: BaseEnvironment) -> str:
    """The package of a built-in environment, or the module that an entry point names."""
    if isinstance(recipe, PluginRecipe):
        return entry_point(recipe.name).module
    return f"infra.environments.{_FOLDERS.get(recipe.name, recipe.name)}"


def _part(recipe: EnvironmentRecipe, name: str) -> ModuleType:
    return import_module(f"{package_of(recipe)}.{name}")


@lru_cache(maxsize=1)
def _of_a_package(recipe: str) -> Any:
    """Environment and annotator in one."""
    told = PluginRecipe.model_validate_json(recipe)
    return entry_point(told.name).load()(told)
