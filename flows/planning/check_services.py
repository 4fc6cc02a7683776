"""Check the services that a run needs, before slow imports, so that a missing one is reported at once."""

from infra.engines.endpoint import require_endpoint
from infra.running.ray_cluster import require_ray
from infra.settings import settings
from schemas.recipes.recipe import Recipe


def require_services(recipe: Recipe) -> None:
    """Refuse a recipe whose endpoint is not configured, or a Ray cluster that is configured but unreachable.

    Raises:
        InputError: a service is missing; the message says what to set.
    """
    require_endpoint(settings(), recipe.endpoint_models)
    require_ray(settings())
