"""Check the services and the GPUs that a run needs, before slow imports, so that a missing one is reported at once."""

from infra.engines.endpoint import require_endpoint
from infra.running.ray_cluster import require_ray
from infra.settings import settings
from schemas.errors import InputError
from schemas.recipes.recipe import Recipe


def require_services(recipe: Recipe) -> None:
    """Refuse a recipe whose GPUs or endpoint are not here, or a Ray cluster that is configured but unreachable.

    Raises:
        InputError: something is missing; the message says what to set.
    """
    if lacking := missing_gpus(recipe):
        raise InputError(f"{recipe.name} needs {lacking}")
    require_endpoint(settings(), recipe.endpoint_models)
    require_ray(settings())


def missing_gpus(recipe: Recipe) -> str:
    """Return what a recipe that was made for GPUs lacks on this machine; empty if nothing."""
    if recipe.gpus == 0:
        return ""
    import torch

    there = torch.cuda.device_count()
    if there >= recipe.gpus:
        return ""
    return (
        f"{recipe.gpus} GPU{'s' * (recipe.gpus > 1)}, and torch finds {there or 'none'} here: run it where they are, or "
        "say --set gpus=0 to try it without"
    )
