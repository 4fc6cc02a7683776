"""What has to be there before a cycle runs: asked before anything that takes long to import, so that it is told at once."""

from infra.engines.endpoint import require_endpoint
from infra.running.ray_cluster import require_ray
from infra.settings import settings
from schemas.recipes.recipe import Recipe


def require_services(recipe: Recipe) -> None:
    """Refuse a recipe that needs a server which is not set, or a cluster which is not there.

    Raises:
        InputError: it does, and what to set.
    """
    require_endpoint(settings(), recipe.endpoint_models)
    require_ray(settings())
