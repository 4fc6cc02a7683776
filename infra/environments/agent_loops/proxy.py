"""Server of chat completions on loopback, behind which the policy answers: each API key is that of one episode."""

import asyncio
import secrets
import socket
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from weakref import WeakValueDictionary

import uvicorn

from infra.environments.agent_loops.episode import LoopEpisode
from infra.serving.chat_completions import Asked, chat_app
from schemas.chat import Piece

_MODEL = "policy"


@dataclass(frozen=True, slots=True)
class PolicyEndpoint:
    """Address of the policy in one episode, as OpenAI's clients take it."""

    base_url: str
    api_key: str
    model: str = _MODEL


class Proxy:
    """Server that passes the requests of agents to their episodes."""

    def __init__(self) -> None:
        """Start the server in a thread of its own; it ends with the process."""
        self._episodes = WeakValueDictionary[str, LoopEpisode]()
        self._socket = socket.create_server(("127.0.0.1", 0))
        app = chat_app(self._begin, _MODEL, lambda key: key in self._episodes)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        Thread(target=server.run, args=[[self._socket]], daemon=True).start()

    def endpoint(self, episode: LoopEpisode) -> PolicyEndpoint:
        """Return the endpoint of an episode, with a key that no other has."""
        key = secrets.token_urlsafe()
        self._episodes[key] = episode
        return PolicyEndpoint(f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1", key)

    async def _begin(self, asked: Asked, key: str) -> AsyncGenerator[Piece]:
        return _written(self._episodes[key].ask(asked.conversation))


async def _written(answer: "Future[Piece]") -> AsyncGenerator[Piece]:
    yield await asyncio.wrap_future(answer)
