"""OpenEnv server: each WebSocket at /ws is a session in one shared environment."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from infra.serving.dynamic_batching import DynamicBatcher
from infra.serving.episode import Episode, task_named
from infra.serving.messages import (
    Action,
    Asked,
    Close,
    ErrorCode,
    Observation,
    Reset,
    ResetParameters,
    State,
    StateAsked,
    asked_in,
    observed,
    refused,
    stands,
)
from infra.serving.tokens import bearer_of, is_let_in
from schemas.errors import DreamGymError, InputError
from schemas.ports import Environment
from schemas.records import AgentTask

_log = logging.getLogger(__name__)
_POLICY_VIOLATION = 1008
"""WebSocket close code for a wrong token."""


@dataclass(frozen=True, slots=True)
class Served:
    """Environment to serve, with its tasks."""

    environment: Environment
    tasks: Sequence[AgentTask]
    """All tasks that can be played, in the order in which they are handed out."""
    max_steps: int
    """Maximum number of steps per episode."""
    description: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the server."""

    max_sessions: int = 128
    """Maximum number of concurrent sessions; further clients are refused with CAPACITY_REACHED."""
    idle_s: float = 600.0
    """Seconds without a message after which a session is ended."""
    send_s: float = 30.0
    """Seconds within which a client must receive an answer."""


def app_of(served: Served, limits: Limits, token: str = "") -> FastAPI:
    """Return the server as a FastAPI application.

    Args:
        served: Environment to serve.
        limits: Limits of the server.
        token: Token that clients must send as a bearer. OpenEnv's own clients can send no header and connect to
            `ws://host:port/token/TOKEN` instead. Empty: no token is required.
    """
    together, coming = DynamicBatcher(served.environment, limits.max_sessions), cycle(served.tasks)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        work = asyncio.create_task(together.work())
        yield
        work.cancel()

    app = FastAPI(title="DreamGym", description=served.description, lifespan=lifespan)

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "healthy"}

    @app.get("/metadata")
    def metadata() -> dict[str, str]:
        return {"name": "dreamgym", "description": served.description}

    @app.get("/schema")
    def schema() -> dict[str, Any]:
        kinds = {"action": Action, "observation": Observation, "state": State}
        return {name: kind.model_json_schema() for name, kind in kinds.items()}

    @app.websocket("/ws")
    @app.websocket("/token/{given}/ws")
    async def play(socket: WebSocket, given: str = "") -> None:
        if not is_let_in(given or bearer_of(socket), token):
            await socket.close(_POLICY_VIOLATION, "a token is needed, and this is not it")
            return
        await socket.accept()
        with suppress(WebSocketDisconnect, TimeoutError, RuntimeError):  # gone, silent or slow: its slot is free again
            await _let_play(socket, together, Session(served, together, coming), limits)
        with suppress(WebSocketDisconnect, TimeoutError, RuntimeError):  # closed already, or too slow even for this
            await asyncio.wait_for(socket.close(), limits.send_s)

    return app


async def _let_play(socket: WebSocket, together: DynamicBatcher, session: "Session", limits: Limits) -> None:
    slot = together.enter()
    if slot is None:
        message = f"all {limits.max_sessions} sessions are taken: close one, or come back later"
        await socket.send_json(refused("CAPACITY_REACHED", message))
        return
    try:
        while not session.is_closed:
            heard = await asyncio.wait_for(_text_from(socket), limits.idle_s)
            answer = await session.answer(slot, heard)
            if answer:
                await asyncio.wait_for(socket.send_json(answer), limits.send_s)
    finally:
        together.leave(slot)


async def _text_from(socket: WebSocket) -> str:
    """Return the next text message; empty, and therefore refused, if the client sends bytes."""
    with suppress(KeyError):
        return await socket.receive_text()
    return ""


class Session:
    """Session of one client: its episodes, one after the other."""

    def __init__(self, served: Served, together: DynamicBatcher, coming: Iterator[AgentTask]) -> None:
        """Create a session without an episode; `coming` yields the next task for all sessions that name none."""
        self._served, self._together, self._coming = served, together, coming
        self._episode: Episode | None = None
        self._episode_id: str | None = None
        self.is_closed = False

    async def answer(self, slot: int, heard: str) -> dict[str, Any] | None:
        """Return the answer to a message, None if there is none. A bad message is refused and the session goes on."""
        try:
            return await self._answer(slot, asked_in.validate_json(heard))
        except Exception as error:
            return _refusal(error)

    async def _answer(self, slot: int, asked: Asked) -> dict[str, Any] | None:
        match asked:
            case Reset():
                return await self._begin(slot, asked.data)
            case StateAsked():
                return stands(self._state())
            case Close():
                self.is_closed = True
                return None
            case _:
                return await self._act(slot, asked.data.action)

    async def _begin(self, slot: int, wanted: ResetParameters) -> dict[str, Any]:
        episode = Episode(self._task(wanted), self._served.max_steps)
        self._episode = None  # the previous episode is over, even if this one cannot start
        begun = episode.begun(await self._together.begin(slot, episode.task))
        self._episode, self._episode_id = episode, wanted.episode_id
        return observed(begun, reward=None, done=False)

    def _task(self, wanted: ResetParameters) -> AgentTask:
        tasks = self._served.tasks
        if wanted.task_id is not None:
            return task_named(tasks, wanted.task_id)
        return next(self._coming) if wanted.seed is None else tasks[wanted.seed % len(tasks)]

    async def _act(self, slot: int, action: str) -> dict[str, Any]:
        episode = self._episode
        if episode is None or episode.done:
            raise InputError("no episode is running: reset first")
        seen, reward = episode.took(await self._together.step(slot, action))
        return observed(seen, reward=reward, done=episode.done)

    def _state(self) -> State:
        if self._episode is None:
            return State()
        return State(
            episode_id=self._episode_id, step_count=self._episode.num_steps, task_id=self._episode.task.task_id
        )


def _refusal(error: Exception) -> dict[str, Any]:
    """Return the error message for a client: what it can do about the error, without internals of the server."""
    match error:
        case ValidationError():
            found = [(".".join(map(str, one["loc"])), one["msg"]) for one in error.errors(include_input=False)]
            code, said = _code_of(error), "; ".join(": ".join(filter(None, one)) for one in found)
        case InputError():
            code, said = "VALIDATION_ERROR", str(error)
        case DreamGymError():
            code, said = "EXECUTION_ERROR", str(error)
        case _:
            _log.error("the environment failed", exc_info=error)
            code, said = "EXECUTION_ERROR", "the environment failed; the server's log says how"
    return refused(code, said)


def _code_of(error: ValidationError) -> ErrorCode:
    """Return the code of a bad message. Without a place, the error is that it is no JSON, or of no known type."""
    first = error.errors(include_input=False)[0]
    if first["loc"]:
        return "VALIDATION_ERROR"
    return "INVALID_JSON" if first["type"] == "json_invalid" else "UNKNOWN_TYPE"
