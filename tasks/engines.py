"""Engines: who samples from a stored model, as the recipe says. The rest of the code does not know which."""

from typing import Literal

from infra.doors import cycle
from infra.engines.vllm import serving
from models.engine import TorchEngine, engine_weights
from schemas.ports import Engine
from schemas.recipe import EngineRecipe
from schemas.records import Reference
from tasks.keep import fetch_merged_model, get_frozen_model

Role = Literal["policy", "experience model"]


def open_engine(role: Role, model: Reference, recipe: EngineRecipe, seed: int) -> Engine:
    """An engine that samples from a stored model.

    Args:
        role: What the model is used as. Of each there is one at a time; a later one takes its place.
        model: Verified before it is loaded.
        recipe: Names the engine.
        seed: Of the torch engine; vLLM draws by itself.
    """
    with cycle().display.stage("engines"):
        if recipe.name == "vllm":
            return serving(role, model.sha256, lambda folder: fetch_merged_model(model, folder), recipe.vllm_dtype)
        return TorchEngine(engine_weights(get_frozen_model(model).network), seed)
