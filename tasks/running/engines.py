"""Engines: who samples from a stored model, as the recipe says. The rest of the code does not know which."""

from typing import Literal

from infra.context import run_context
from infra.engines.vllm import serving
from models.generation.torch_engine import TorchEngine, engine_weights
from models.generation.weight_following_engine import LiveWeightsEngine
from schemas.ports import Engine
from schemas.recipes.recipe import EngineRecipe
from schemas.records import Reference
from tasks.running.artifacts import fetch_merged_model, get_frozen_model

Role = Literal["policy", "experience model"]

_OTHER_NUMBERS = 1_000_000_007
"""Between the seeds of an engine and of the one that follows it."""


def open_engine(role: Role, model: Reference, recipe: EngineRecipe, seed: int) -> Engine:
    """An engine that samples from a stored model.

    Args:
        role: What the model is used as. Of each there is one at a time; a later one takes its place.
        model: Verified before it is loaded.
        recipe: Names the engine.
        seed: Of the torch engine; vLLM draws by itself.
    """
    with run_context().display.stage("engines"):
        if recipe.name == "vllm":
            say = run_context().display.say
            return serving(role, model.sha256, lambda folder: fetch_merged_model(model, folder), recipe.vllm_dtype, say)
        return TorchEngine(engine_weights(get_frozen_model(model).network), seed, model.sha256)


_latest_weights: dict[Role, Reference] = {}


def publish_weights(role: Role, model: Reference) -> None:
    """Let engines that follow a role sample from this model at their next turn."""
    _latest_weights[role] = model


def open_live_engine(role: Role, model: Reference, recipe: EngineRecipe, seed: int) -> Engine:
    """An engine that begins with a stored model, or with what has succeeded it, and moves on to each that does."""
    return LiveWeightsEngine(_Newest(role, model, recipe, seed))


class _Newest:
    """The engine of a role's newest model."""

    def __init__(self, role: Role, model: Reference, recipe: EngineRecipe, seed: int) -> None:
        self._role: Role = role
        self._recipe, self._seed = recipe, seed
        self._open(_latest_weights.get(role, model))

    def _open(self, model: Reference) -> None:
        self._model, self._engine = model, open_engine(self._role, model, self._recipe, self._seed)

    def __call__(self) -> Engine:
        newest = _latest_weights.get(self._role, self._model)
        if newest.sha256 != self._model.sha256:
            self._seed += _OTHER_NUMBERS
            self._open(newest)
        return self._engine
