"""Predictors of an experience model: a stored network, or a model at an endpoint. Other code does not know which."""

from collections.abc import Mapping
from dataclasses import asdict

from infra.context import objects, run_context
from infra.engines.endpoint import Endpoint
from infra.settings import settings
from models.experience.chat_predictor import ChatPredictor
from models.experience.experience_formats import open_experience_format
from models.experience.predictors import LocalPredictor, Predictor
from schemas.recipes.networks import EngineRecipe, ExperienceRecipe
from schemas.records import Reference
from tasks.running.artifacts import get_frozen_model
from tasks.running.engines import open_engine

_ROLE = "experience model"
_ANSWERS = "predictions"
"""Name under which limits that the experience model met are counted, whatever stage asked it."""
_ENDPOINT_MODEL = "endpoint model"


def put_endpoint_model(name: str) -> Reference:
    """Store the name of the endpoint model that is the experience model, so that it has a reference like any other."""
    return objects().put_json({"model": name}, _ENDPOINT_MODEL)


def endpoint_model_of(model: Reference) -> str:
    """Return the name of a model that is at the endpoint; empty for a stored network."""
    return objects().get_json(model)["model"] if model.kind == _ENDPOINT_MODEL else ""


def open_predictor(
    experience_model: Reference,
    engine: EngineRecipe,
    recipe: ExperienceRecipe,
    seed: int,
    max_new_tokens: int | None = None,
) -> Predictor:
    """Open the predictor of an experience model.

    Args:
        experience_model: Experience model, verified before it is loaded.
        engine: Section of the engine that samples from a stored network.
        recipe: What the model reads and writes, and the limits of both; an endpoint model has its provider's limit of
            new tokens.
        seed: Seed of the sampling.
        max_new_tokens: Tokens of an answer that is no prediction; None: the recipe's limit of predictions.
    """
    if name := endpoint_model_of(experience_model):
        return open_chat_predictor(name, recipe, seed)
    sampler = open_engine(_ROLE, experience_model, engine, seed, recipe.max_stream_tokens)
    format = open_experience_format(get_frozen_model(experience_model).format, recipe)
    return LocalPredictor(sampler, format, max_new_tokens or recipe.max_new_tokens, recipe.top_p, _met)


def open_chat_predictor(model: str, recipe: ExperienceRecipe, seed: int) -> ChatPredictor:
    """Open a model at the endpoint as a predictor."""
    return ChatPredictor(open_endpoint(model), seed, recipe.top_p, recipe.next_state, recipe.max_prompt_tokens, _met)


def _met(limits: Mapping[str, int]) -> None:
    run_context().display.time.met(_ANSWERS, limits)


def open_endpoint(model: str) -> Endpoint:
    """Open a model at the endpoint; its costs are counted under its name."""
    return Endpoint(settings(), model, lambda cost: run_context().display.time.asked(model, asdict(cost)))
