"""Check the services and the GPUs that a run needs, before slow imports, so that a missing one is reported at once."""

from infra.engines.endpoint import require_endpoint
from infra.engines.vllm_environment import is_there
from infra.running.ray_cluster import require_ray
from infra.settings import settings
from schemas.errors import InputError
from schemas.recipes.recipe import Recipe

_PLACES = "engine.policy_gpus and engine.experience_gpus"


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
    """Return what a recipe that names GPUs, or was made for some, lacks on this machine; empty if nothing."""
    named = (*recipe.engine.policy_gpus, *recipe.engine.experience_gpus) if recipe.engine.name == "vllm" else ()
    needed = max([recipe.gpus, *(1 + gpu for gpu in named)])
    if needed == 0 or (there := _num_gpus()) >= needed:
        return ""
    without = "--set gpus=0 to try it without" if needed == recipe.gpus else f"which of them vLLM has: {_PLACES}"
    return f"{needed} GPU{'s' * (needed > 1)}, and torch finds {there or 'none'} here: run it where they are, or say {without}"


def on_this_machine(recipe: Recipe) -> Recipe:
    """Return a recipe with the engine that it leaves to the machine that it runs on."""
    if recipe.engine.name != "auto":
        return recipe
    return recipe.with_engine_for(_num_gpus(), has_vllm=is_there(settings()))


def _num_gpus() -> int:
    import torch

    return torch.cuda.device_count()
