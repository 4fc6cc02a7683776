"""Which real environments there are, by the name that recipes use. Each is imported when it is asked for."""

from functools import lru_cache
from importlib.util import find_spec
from shutil import which
from typing import Any

from infra.settings import settings
from schemas.environments import (
    AlfworldRecipe,
    CookingRecipe,
    MiniwobRecipe,
    PluginRecipe,
    ScienceworldRecipe,
    WebshopRecipe,
    entry_point,
)
from schemas.errors import InputError
from schemas.ports import Annotator, Listed, RealEnvironment
from schemas.recipe import EnvironmentRecipe


def open_environment(recipe: EnvironmentRecipe) -> RealEnvironment:
    """The environment that a recipe names, with its families of tasks.

    One that has processes or sessions of its own is the same for the same recipe, and plays one rollout at a time.

    Raises:
        InputError: it cannot be opened here, and what is missing.
    """
    match recipe:
        case CookingRecipe():
            return _cooking(recipe)
        case AlfworldRecipe():
            return _alfworld(recipe.model_dump_json())
        case WebshopRecipe():
            return _webshop(settings().environment_url)
        case MiniwobRecipe():
            return _miniwob(recipe.model_dump_json())
        case ScienceworldRecipe():
            return _scienceworld(recipe.model_dump_json())
        case PluginRecipe():
            return _of_a_package(recipe.model_dump_json())


def _cooking(recipe: CookingRecipe) -> RealEnvironment:
    from infra.environments.cooking.environment import CookingEnvironment

    return CookingEnvironment(
        {name: {**family.model_dump(), "take": family.recipe} for name, family in recipe.families.items()}
    )


@lru_cache(maxsize=1)
def _alfworld(recipe: str) -> RealEnvironment:
    if find_spec("alfworld") is None:
        raise InputError("environment 'alfworld' needs a package: pip install 'dreamgym[alfworld]'")
    from infra.environments.alfworld.environment import AlfworldEnvironment

    return AlfworldEnvironment(AlfworldRecipe.model_validate_json(recipe))


@lru_cache(maxsize=1)
def _webshop(url: str) -> RealEnvironment:
    if not url:
        raise InputError(
            "environment 'webshop' needs a server: run AgentGym's agentenv-webshop, and set DREAMGYM_ENVIRONMENT_URL to its "
            "address"
        )
    from infra.environments.webshop.environment import WebshopEnvironment
    from infra.environments.webshop.server import WebshopServer

    return WebshopEnvironment(WebshopServer(url))


@lru_cache(maxsize=1)
def _miniwob(recipe: str) -> RealEnvironment:
    if find_spec("miniwob") is None or find_spec("selenium") is None:
        raise InputError("environment 'miniwob' needs packages: pip install 'dreamgym[miniwob]'")
    from infra.environments.miniwob.browser import require_browser
    from infra.environments.miniwob.environment import MiniwobEnvironment

    require_browser()
    return MiniwobEnvironment(MiniwobRecipe.model_validate_json(recipe))


@lru_cache(maxsize=1)
def _scienceworld(recipe: str) -> RealEnvironment:
    if find_spec("scienceworld") is None:
        raise InputError("environment 'scienceworld' needs a package: pip install 'dreamgym[scienceworld]'")
    if which("java") is None:
        raise InputError("environment 'scienceworld' needs Java: apt-get install default-jre-headless")
    from infra.environments.scienceworld.environment import ScienceworldEnvironment

    return ScienceworldEnvironment(ScienceworldRecipe.model_validate_json(recipe))


@lru_cache(maxsize=1)
def _of_a_package(recipe: str) -> Any:
    """Environment and annotator in one."""
    told = PluginRecipe.model_validate_json(recipe)
    return entry_point(told.name).load()(told)


def listed_by(recipe: EnvironmentRecipe) -> Listed | None:
    """How to read what this environment's states accept; None if they do not list it. Nothing has to be installed for it."""
    match recipe:
        case AlfworldRecipe():
            from infra.environments.alfworld.listed import AlfworldListed

            return AlfworldListed()
        case MiniwobRecipe():
            from infra.environments.miniwob.listed import MiniwobListed

            return MiniwobListed()
        case _:
            return None


def annotator_of_facts(recipe: EnvironmentRecipe) -> Annotator:
    """The annotator that knows this environment's own rules; what a package brings is both."""
    match recipe:
        case CookingRecipe():
            from infra.environments.cooking.annotator import CookingAnnotator

            return CookingAnnotator()
        case AlfworldRecipe():
            from infra.environments.alfworld.annotator import AlfworldAnnotator

            return AlfworldAnnotator()
        case WebshopRecipe():
            from infra.environments.webshop.annotator import WebshopAnnotator

            return WebshopAnnotator()
        case MiniwobRecipe():
            from infra.environments.miniwob.annotator import MiniwobAnnotator

            return MiniwobAnnotator()
        case ScienceworldRecipe():
            from infra.environments.scienceworld.annotator import ScienceworldAnnotator

            return ScienceworldAnnotator()
        case PluginRecipe():
            return _of_a_package(recipe.model_dump_json())
