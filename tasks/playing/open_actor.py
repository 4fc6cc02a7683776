"""Open what acts in an episode: a stored policy on an engine, or a chat model at an endpoint. Rollouts do not know which."""

import sys
from dataclasses import asdict, dataclass

from infra.context import objects, run_context
from infra.engines.chat_engine import ChatEngine
from infra.engines.endpoint import Endpoint
from infra.settings import settings
from models.text.policies.policy_format import PolicyFormat
from models.text.policies.policy_formats import open_endpoint_format, open_policy_format
from schemas.ports import Engine
from schemas.recipes.recipe import RealPlayRecipe
from schemas.records import Reference
from tasks.running.artifacts import get_frozen_model
from tasks.running.engines import open_engine, open_live_engine

_ENDPOINT_POLICY = "endpoint policy"


@dataclass(frozen=True, slots=True)
class Actor:
    """Policy as a rollout uses it."""

    engine: Engine
    format: PolicyFormat
    max_episode_tokens: int
    """Ids that a stream may have."""


def put_endpoint_policy(url: str, model: str) -> Reference:
    """Store address and name of a chat model, so that it has a reference like any other policy."""
    return objects().put_json({"url": url, "model": model}, _ENDPOINT_POLICY)


def open_actor(policy: Reference, recipe: RealPlayRecipe, seed: int, *, follow: bool = False) -> Actor:
    """Open a policy.

    Args:
        policy: Stored policy, verified before it is loaded, or one at an endpoint.
        recipe: Settings of the engine, and what the policy reads and writes.
        seed: Seed of the sampling.
        follow: Go on with the policy's successor as soon as it has one.
    """
    if policy.kind == _ENDPOINT_POLICY:
        return _at_an_endpoint(policy, recipe, seed)
    length, opened = recipe.policy.max_episode_tokens, open_live_engine if follow else open_engine
    engine = opened("policy", policy, recipe.engine, seed, length)
    return Actor(engine, open_policy_format(get_frozen_model(policy).format, recipe.policy), length)


def _at_an_endpoint(policy: Reference, recipe: RealPlayRecipe, seed: int) -> Actor:
    """Open a chat model; its provider limits what it reads."""
    named = objects().get_json(policy)
    here, time = settings().model_copy(update={"endpoint_url": named["url"]}), run_context().display.time
    endpoint = Endpoint(here, named["model"], lambda cost: time.asked(named["model"], asdict(cost)))
    return Actor(ChatEngine(endpoint, seed, policy.sha256), open_endpoint_format(recipe.policy), sys.maxsize)
