"""Requirements of a recipe that are missing on this machine, each with the one thing to do about it."""

from collections.abc import Iterator

from huggingface_hub import logging

from flows.planning.check_services import missing_gpus
from flows.runs.find_policy import find_policy
from infra.engines.endpoint import require_endpoint
from infra.environments.by_name import open_environment
from infra.settings import settings
from models.network.language_model import load_architecture, require_computable
from models.network.lora import require_peft
from schemas.errors import DreamGymError
from schemas.recipes.environments import LogsRecipe
from schemas.recipes.recipe import Recipe
from tasks.backbones.find_backbone import backbone_folder
from tasks.data.held_out_logs import with_splits
from tasks.planning.contract import require_contract
from tasks.planning.logged import logged_episodes


def missing(recipe: Recipe) -> list[str]:
    """Return a sentence for each requirement that is missing: GPU, environment, model, endpoint."""
    return [*filter(None, [missing_gpus(recipe)]), *_others(recipe)]


def _others(recipe: Recipe) -> Iterator[str]:
    def environment() -> None:
        if isinstance(recipe.environment, LogsRecipe):
            with_splits(logged_episodes(recipe.ingest), recipe.environment)
        else:
            open_environment(recipe.environment).tasks("train", 1)

    def model() -> None:
        backbone = recipe.backbone
        logging.set_verbosity_error()  # the hub's client reports each of its attempts
        if not backbone.scratch:
            found = backbone_folder(backbone) or backbone.model
            config, format = load_architecture(found, revision=backbone.revision)
            require_computable(config, recipe.training, settings().num_ranks)
            require_contract(format, recipe)

    def adapters() -> None:
        if recipe.training.lora_rank:
            require_peft()

    def start() -> None:
        if recipe.start.run:
            find_policy(recipe.start.run, recipe.start.policy)

    requirements = {
        f"the environment {recipe.environment.name}": environment,
        "the backbone": model,
        "adapters": adapters,
        "the starting policy": start,
        "the endpoint": lambda: require_endpoint(settings(), recipe.endpoint_models),
    }
    for name, require in requirements.items():
        try:
            require()
        except DreamGymError as error:
            yield f"{name}: {str(error).splitlines()[0]}"
