"""OpenAI-compatible server of one model: POST /v1/chat/completions, with or without streaming, and GET /v1/models."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from uuid import uuid4

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from infra.serving.tokens import bearer_of, is_let_in
from schemas.chat import Conversationalist, Piece
from schemas.errors import InputError


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


def completions_app(model: Conversationalist, name: str, token: str = "") -> FastAPI:
    """Return the server as a FastAPI application. Answers are written one after the other.

    Args:
        model: Model that answers.
        name: Name of the model in answers.
        token: API key that clients must send; empty: none is required.
    """
    one_at_a_time = asyncio.Lock()

    def require_token(request: Request) -> None:
        if not is_let_in(bearer_of(request), token):
            raise HTTPException(401, "an API key is needed, and this is not it")

    app = FastAPI(title="DreamGym", dependencies=[Depends(require_token)])
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _refused)

    @app.get("/v1/models")
    def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "dreamgym"}]}

    @app.post("/v1/chat/completions", response_model=None)
    async def complete(asked: Asked) -> StreamingResponse | dict[str, Any]:
        head = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": name}
        limit = asked.max_completion_tokens or asked.max_tokens
        try:
            messages = [one.plain for one in asked.messages]
            answer = await asyncio.to_thread(model.answer, messages, limit, asked.temperature)
        except InputError as error:
            raise HTTPException(400, str(error)) from error
        if asked.stream:
            return StreamingResponse(_streamed(head, answer, one_at_a_time), media_type="text/event-stream")
        async with one_at_a_time:
            return _whole(head, await asyncio.to_thread(list, answer))

    return app


async def _streamed(head: dict[str, Any], answer: Iterator[Piece], one_at_a_time: asyncio.Lock) -> AsyncIterator[str]:
    """Yield an answer as server-sent events."""
    head = {**head, "object": "chat.completion.chunk"}
    async with one_at_a_time:
        while (piece := await asyncio.to_thread(next, answer, None)) is not None:
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
    kind = "authentication_error" if status == 401 else "invalid_request_error"
    return JSONResponse({"error": {"message": message, "type": kind, "code": None}}, status)
