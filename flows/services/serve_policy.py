"""Serve a policy to other people's agents: OpenAI-compatible chat completions."""

from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI

from flows.runs.find_policy import FoundPolicy
from flows.services.open_policy import reopen_run_of
from infra.progress.progress import Display
from infra.serving.chat_completions import completions_app
from infra.settings import settings
from models.network.language_model import LanguageModel
from models.rollout.conversations import Conversations
from schemas.recipes.recipe import Recipe
from tasks.running.artifacts import get_frozen_model
from tasks.running.engines import open_engine

_AT_ONCE = 16
"""Maximum number of conversations in a batch: each may be as long as the model reads, and has memory for the longest."""


def serve_policy(
    found: FoundPolicy, host: str, port: int, show: Callable[[dict[str, Any]], None] | None = None
) -> None:
    """Serve a policy until Ctrl-C.

    Args:
        found: Policy to serve.
        host: Address to listen on; see require_place.
        port: Port to listen on.
        show: Receives policy and address instead of the display.

    Raises:
        InputError: the policy has no chat template, or was produced by no run of this home.
    """
    display = Display()
    app, url = policy_app(found, display), f"http://{host}:{port}/v1"
    if show:
        show({"policy": found.title, "sha256": found.reference.sha256, "url": url})
    else:
        display.say(f"{found.title} is at {url} (OpenAI-compatible chat completions); Ctrl-C ends it")
    uvicorn.run(app, host=host, port=port, access_log=False, log_level="warning")


def policy_app(found: FoundPolicy, display: Display) -> FastAPI:
    """Return the server of a policy, named by its digest."""
    recipe, model = reopen_run_of(found, display), get_frozen_model(found.reference)
    length = _conversation_tokens(recipe, model)
    engine = open_engine("policy", found.reference, recipe.engine, 0, length)
    answering = Conversations(engine, model.format, length, min(_AT_ONCE, recipe.policy.num_slots))
    return completions_app(answering, found.reference.sha256[:12], settings().serve_token.get_secret_value())


def _conversation_tokens(recipe: Recipe, model: LanguageModel) -> int:
    """Return the tokens of a conversation: all that the model reads, or what a vLLM server of its run has room for."""
    positions = model.max_positions
    return positions if recipe.engine.name == "torch" else min(positions, recipe.policy.max_episode_tokens)
