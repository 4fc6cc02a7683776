"""Look up the real environment that a recipe names.

Each environment is a package of its own, imported on first use. A built-in package has `opened.py`, `annotator.py`,
`listed.py` if its states list the actions that they accept, and `progress.py` if they tell how far they are. A plugin is an entry point: one class that is both
environment and annotator.

Packages are named by text, so that a task's import closure holds only the package of its own recipe
(tasks/running/cache_key.py).
"""

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from schemas.ports import AdmissibleActions, Annotator, Progress, RealEnvironment
from schemas.recipes.environments import BaseEnvironment, PluginRecipe, entry_point
from schemas.recipes.recipe import EnvironmentRecipe

_FOLDERS = {"textworld-cooking": "cooking"}
"""Folders of the built-in environments whose folder has another name."""


def open_environment(recipe: EnvironmentRecipe) -> RealEnvironment:
    """Return the environment that a recipe names, with its task families.

    An environment with processes or sessions of its own is shared by equal recipes, and plays one rollout at a time.

    Raises:
        InputError: If it cannot be opened here. The message says what is missing.
    """
    if isinstance(recipe, PluginRecipe):
        return _of_a_package(recipe.model_dump_json())
    return _part(recipe, "opened").open_environment(recipe)


def admissible_actions_of(recipe: EnvironmentRecipe) -> AdmissibleActions | None:
    """Return the reader of the actions that this environment's states list; None if they list none.

    No packages have to be installed for it.
    """
    return _part(recipe, "listed").StateLists() if _has_part(recipe, "listed") else None


def progress_of(recipe: EnvironmentRecipe) -> Progress | None:
    """Return the reader of how far this environment's states are towards the goal; None if they do not tell."""
    return _part(recipe, "progress").StateProgress() if _has_part(recipe, "progress") else None


def annotator_of_facts(recipe: EnvironmentRecipe) -> Annotator:
    """Return the annotator that knows this environment's own rules; a plugin is its own annotator."""
    if isinstance(recipe, PluginRecipe):
        return _of_a_package(recipe.model_dump_json())
    return _part(recipe, "annotator").FactsAnnotator()


def package_of(recipe: BaseEnvironment) -> str:
    """Return the package of a built-in environment, or the module of a plugin's entry point."""
    if isinstance(recipe, PluginRecipe):
        return entry_point(recipe.name).module
    return f"infra.environments.{_FOLDERS.get(recipe.name, recipe.name)}"


def _has_part(recipe: EnvironmentRecipe, name: str) -> bool:
    return not isinstance(recipe, PluginRecipe) and find_spec(f"{package_of(recipe)}.{name}") is not None


def _part(recipe: EnvironmentRecipe, name: str) -> ModuleType:
    return import_module(f"{package_of(recipe)}.{name}")


@lru_cache(maxsize=1)
def _of_a_package(recipe: str) -> Any:
    """Return the plugin, which is environment and annotator in one."""
    parsed = PluginRecipe.model_validate_json(recipe)
    return entry_point(parsed.name).load()(parsed)
