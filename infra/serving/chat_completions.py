"""OpenAI-compatible server: POST /v1/chat/completions, with or without streaming, and GET /v1/models."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any
from uuid import uuid4

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from infra.serving.conversation_batching import ConversationBatcher
from infra.serving.tokens import bearer_of, is_let_in
from schemas.chat import Conversationalist, Piece
from schemas.errors import EngineError, InputError


class TextPart(BaseModel):
    """A part of a message; others than text are refused."""

    type: str = Field(pattern="^text$")
    text: str


class Message(BaseModel):
    """A message of a conversation."""

    role: str
    content: str | list[TextPart] | None = None

    @property
    def plain(self) -> dict[str, str]:
        """Role and text."""
        parts = self.content if isinstance(self.content, list) else []
        text = self.content if isinstance(self.content, str) else "\n".join(part.text for part in parts)
        return {"role": self.role, "content": text}


class Asked(BaseModel):
    """Request for a completion; fields that are not listed have no effect."""

    model_config = ConfigDict(extra="ignore")

    messages: list[Message] = Field(min_length=1)
    model: str = ""
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float = Field(default=0.0, ge=0, le=2)
    """0 is greedy, as policies are evaluated; OpenAI's own default is 1."""
    stream: bool = False
    n: int = Field(default=1, ge=1, le=1)
    """Number of answers; more than one is refused."""

    @property
    def conversation(self) -> list[dict[str, str]]:
        """Messages with role and text."""
        return [one.plain for one in self.messages]


Answering = Callable[[Asked, str], Awaitable[AsyncGenerator[Piece]]]
"""Begins the answer to a request of a client with an API key; raises an InputError if it cannot be answered."""


def completions_app(model: Conversationalist[Any], name: str, token: str = "") -> FastAPI:
    """Return the server of a model as a FastAPI application. Requests that run at the same time are answered in one batch.

    Args:
        model: Model that answers.
        name: Name of the model in answers.
        token: API key that clients must send; empty: none is required.
    """
    together = ConversationBatcher(model)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        work = asyncio.create_task(together.work())
        yield
        work.cancel()

    async def begin(asked: Asked, _: str) -> AsyncGenerator[Piece]:
        limit = asked.max_completion_tokens or asked.max_tokens
        return together.answer(await asyncio.to_thread(model.begin, asked.conversation, limit, asked.temperature))

    app = chat_app(begin, name, lambda key: is_let_in(key, token), lifespan)
    app.state.together = together
    return app


def chat_app(begin: Answering, name: str, lets_in: Callable[[str], bool], lifespan: Any = None) -> FastAPI:
    """Return a server that speaks OpenAI's chat completions, whoever answers.

    Args:
        begin: Begins an answer.
        name: Name of the model in answers.
        lets_in: Returns whether a client with this API key is let in.
        lifespan: Context of the server, as FastAPI takes it.
    """

    def require_key(request: Request) -> None:
        if not lets_in(bearer_of(request)):
            raise HTTPException(401, "an API key is needed, and this is not it")

    app = FastAPI(title="DreamGym", dependencies=[Depends(require_key)], lifespan=lifespan)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _refused)

    @app.get("/v1/models")
    def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "dreamgym"}]}

    @app.post("/v1/chat/completions", response_model=None)
    async def complete(asked: Asked, request: Request) -> StreamingResponse | dict[str, Any]:
        head = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": name}
        try:
            answer = await begin(asked, bearer_of(request))
            if asked.stream:
                return StreamingResponse(_streamed(head, answer), media_type="text/event-stream")
            return _whole(head, await _all_for(request, answer))
        except InputError as error:
            raise HTTPException(400, str(error)) from error
        except EngineError as error:
            raise HTTPException(503, str(error)) from error

    return app


async def _all_for(request: Request, answer: AsyncGenerator[Piece]) -> list[Piece]:
    """Return all pieces of an answer; those so far if the client has gone, for whom no more are written."""
    pieces: list[Piece] = []
    async with aclosing(answer):
        async for piece in answer:
            pieces.append(piece)
            if await request.is_disconnected():
                break
    return pieces


async def _streamed(head: dict[str, Any], answer: AsyncGenerator[Piece]) -> AsyncIterator[str]:
    """Yield an answer as server-sent events; it ends where its client goes."""
    head = {**head, "object": "chat.completion.chunk"}
    async with aclosing(answer):
        async for piece in answer:
            choice = {"index": 0, "delta": {"role": "assistant", "content": piece.text}}
            event = {**head, "choices": [{**choice, "finish_reason": piece.finish_reason or None}]}
            yield f"data: {json.dumps(event)}\n\n"
    yield "data: [DONE]\n\n"


def _whole(head: dict[str, Any], pieces: Sequence[Piece]) -> dict[str, Any]:
    """Return an answer as one object."""
    message = {"role": "assistant", "content": "".join(piece.text for piece in pieces)}
    read, written = pieces[0].num_prompt_tokens, sum(piece.num_tokens for piece in pieces)
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return {
        **head,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": pieces[-1].finish_reason}],
        **({"usage": usage} if read else {}),
    }


async def _refused(_: Request, error: Exception) -> JSONResponse:
    """Return an error in the form that OpenAI's clients read."""
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        status, message = 400, f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}"
    else:
        assert isinstance(error, HTTPException)
        status, message = error.status_code, str(error.detail)
    kind = {401: "authentication_error", 503: "server_error"}.get(status, "invalid_request_error")
    return JSONResponse({"error": {"message": message, "type": kind, "code": None}}, status)
