"""Serve a policy to other people's agents: OpenAI-compatible chat completions."""

from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI

from flows.runs.find_policy import FoundPolicy
from flows.services.open_policy import reopen_policy
from infra.serving.chat_completions import completions_app
from infra.settings import settings
from infra.tracking.progress import Display
from models.rollout.conversations import Conversations


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
    _, engine, model = reopen_policy(found, display)
    answering = Conversations(engine, model.format, model.max_positions)
    return completions_app(answering, found.reference.sha256[:12], settings().serve_token.get_secret_value())
