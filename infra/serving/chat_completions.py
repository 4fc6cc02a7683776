"""OpenAI-compatible server of one model: POST /v1/chat/completions, with or without streaming, and GET /v1/models."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
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


def completions_app(model: Conversationalist[Any], name: str, token: str = "") -> FastAPI:
    """Return the server as a FastAPI application. Requests that run at the same time are answered in one batch.

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

    def require_token(request: Request) -> None:
        if not is_let_in(bearer_of(request), token):
            raise HTTPException(401, "an API key is needed, and this is not it")

    app = FastAPI(title="DreamGym", dependencies=[Depends(require_token)], lifespan=lifespan)
    app.state.together = together
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _refused)

    @app.get("/v1/models")
    def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "dreamgym"}]}

    @app.post("/v1/chat/completions", response_model=None)
    async def complete(asked: Asked, request: Request) -> StreamingResponse | dict[str, Any]:
        head = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": name}
        limit = asked.max_completion_tokens or asked.max_tokens
        try:
            messages = [one.plain for one in asked.messages]
            conversation = await asyncio.to_thread(model.begin, messages, limit, asked.temperature)
        except InputError as error:
            raise HTTPException(400, str(error)) from error
        answer = together.answer(conversation)
        if asked.stream:
            return StreamingResponse(_streamed(head, answer), media_type="text/event-stream")
        try:
            return _whole(head, await _all_for(request, answer))
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
    return {
        **head,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": pieces[-1].finish_reason}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
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
