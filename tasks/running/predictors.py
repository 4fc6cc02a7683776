"""Predictors of an experience model: a stored network, or a model at an endpoint. Other code does not know which."""

from dataclasses import asdict

from infra.context import objects, run_context
from infra.engines.endpoint import Endpoint
from infra.settings import settings
from models.experience.chat_predictor import ChatPredictor
from models.experience.predictors import LocalPredictor, Predictor
from schemas.recipes.networks import EngineRecipe
from schemas.records import Reference
from tasks.running.artifacts import get_frozen_model
from tasks.running.engines import open_engine

_ENDPOINT_MODEL = "endpoint model"


def put_endpoint_model(name: str) -> Reference:
    """Store the name of the endpoint model that is the experience model, so that it has a reference like any other."""
    return objects().put_json({"model": name}, _ENDPOINT_MODEL)


def open_predictor(
    experience_model: Reference, engine: EngineRecipe, seed: int, max_new_tokens: int, top_p: float = 1.0
) -> Predictor:
    """Open the predictor of an experience model.

    Args:
        experience_model: Experience model, verified before it is loaded.
        engine: Section of the engine that samples from a stored network.
        seed: Seed of the sampling.
        max_new_tokens: Maximum number of new tokens of a stored network; an endpoint model has its provider's limit.
        top_p: Probability mass that is sampled from; see Sampling.
    """
    if experience_model.kind == _ENDPOINT_MODEL:
        return open_chat_predictor(objects().get_json(experience_model)["model"], seed, top_p)
    sampler = open_engine("experience model", experience_model, engine, seed)
    return LocalPredictor(sampler, get_frozen_model(experience_model).format, max_new_tokens, top_p)


def open_chat_predictor(model: str, seed: int, top_p: float = 1.0) -> ChatPredictor:
    """Open a model at the endpoint as a predictor."""
    return ChatPredictor(open_endpoint(model), seed, top_p)


def open_endpoint(model: str) -> Endpoint:
    """Open a model at the endpoint; its costs are counted under its name."""
    return Endpoint(settings(), model, lambda cost: run_context().display.time.asked(model, asdict(cost)))
