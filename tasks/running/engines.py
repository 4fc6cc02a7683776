"""Engines that sample from a stored model, as the recipe says. The rest of the code does not know which one does."""

from dataclasses import replace
from functools import partial
from typing import Literal

from infra.context import run_context
from infra.engines.vllm import serving, serving_adapters
from infra.engines.vllm_command import ServerOptions
from infra.engines.vllm_served import Stored
from models.generation.torch_engine import TorchEngine, engine_weights
from models.generation.weight_following_engine import LiveWeightsEngine
from models.network.language_model import LanguageModel
from models.network.lora import adapter_rank
from models.network.transformer import is_foreign
from schemas.ports import Engine
from schemas.recipes.networks import EngineRecipe
from schemas.records import Reference
from tasks.running.artifacts import base_digest, fetch_adapters, fetch_base, fetch_merged_model, get_frozen_model

Role = Literal["policy", "experience model"]

_OTHER_NUMBERS = 1_000_000_007
"""Seed offset between an engine and its successor."""


def open_engine(role: Role, model: Reference, recipe: EngineRecipe, seed: int, max_tokens: int) -> Engine:
    """Open an engine that samples from a stored model.

    Args:
        role: Role of the model. Each role has one engine at a time; a later one replaces it.
        model: Model to sample from, verified before it is loaded.
        recipe: Section that names the engine.
        seed: Seed of the torch engine; vLLM draws by itself.
        max_tokens: Tokens of a stream, prompts and answers; never more than the model has positions. What is longer is
            not sampled, by neither engine.
    """
    with run_context().display.timed("engines"):
        opened = get_frozen_model(model)
        length = min(max_tokens, opened.max_positions)
        if recipe.name == "vllm":
            return _on_vllm(role, model, opened, recipe, length)
        return TorchEngine(engine_weights(opened.network), seed, model.sha256, length)


def _on_vllm(role: Role, model: Reference, opened: LanguageModel, recipe: EngineRecipe, length: int) -> Engine:
    """Open an engine on vLLM: adapters over the same weights share a server, if vLLM computes the network as we do."""
    say, rank = run_context().display.say, adapter_rank(opened.network)
    gpus = recipe.policy_gpus if role == "policy" else recipe.experience_gpus
    options = ServerOptions(recipe.vllm_dtype, length, rank, gpus, recipe.sleep)
    if not rank or is_foreign(opened.network):
        whole = Stored(model.sha256, partial(fetch_merged_model, model))
        return serving(role, whole, replace(options, adapter_rank=0), say)
    base = Stored(base_digest(model), partial(fetch_base, model))
    return serving_adapters(role, base, Stored(model.sha256, partial(fetch_adapters, model)), options, say)


_latest_weights: dict[Role, Reference] = {}


def publish_weights(role: Role, model: Reference) -> None:
    """Let live engines of a role sample from this model from their next turn on."""
    _latest_weights[role] = model


def open_live_engine(role: Role, model: Reference, recipe: EngineRecipe, seed: int, max_tokens: int) -> Engine:
    """Open an engine that starts with a stored model, or its latest successor, and moves on to each newer one."""
    return LiveWeightsEngine(_Newest(role, model, recipe, seed, max_tokens))


class _Newest:
    """Opener of the engine for a role's newest model."""

    def __init__(self, role: Role, model: Reference, recipe: EngineRecipe, seed: int, max_tokens: int) -> None:
        self._role: Role = role
        self._recipe, self._seed, self._max_tokens = recipe, seed, max_tokens
        self._open(_latest_weights.get(role, model))

    def _open(self, model: Reference) -> None:
        self._model = model
        self._engine = open_engine(self._role, model, self._recipe, self._seed, self._max_tokens)

    def __call__(self) -> Engine:
        newest = _latest_weights.get(self._role, self._model)
        if newest.sha256 != self._model.sha256:
            self._seed += _OTHER_NUMBERS
            self._open(newest)
        return self._engine
