"""Open WebShop, if the settings name its server."""

from functools import lru_cache

from infra.environments.webshop.environment import WebshopEnvironment
from infra.environments.webshop.server import WebshopServer
from infra.settings import settings
from schemas.errors import InputError
from schemas.recipes.environments import WebshopRecipe


def open_environment(recipe: WebshopRecipe) -> WebshopEnvironment:
    """Return the environment, the same object for the same server.

    Raises:
        InputError: If the settings name no server.
    """
    return _at(settings().environment_url)


@lru_cache(maxsize=1)
def _at(url: str) -> WebshopEnvironment:
    if not url:
        raise InputError(
            "environment 'webshop' needs a server: run AgentGym's agentenv-webshop, and set DREAMGYM_ENVIRONMENT_URL to its "
            "address"
        )
    return WebshopEnvironment(WebshopServer(url))
