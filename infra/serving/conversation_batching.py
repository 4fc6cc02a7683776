"""Continuous batching of conversations with one model: a new one joins those that run at their next piece."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Generic

from schemas.chat import Conversationalist, ConversationT, Piece
from schemas.errors import EngineError


@dataclass(eq=False, slots=True)
class _Asked(Generic[ConversationT]):
    """Conversation that waits for its answer, or gets it."""

    conversation: ConversationT
    outcomes: "asyncio.Queue[Piece | Exception]" = field(default_factory=asyncio.Queue)
    is_over: bool = False
    """True if its answer has ended, or nobody waits for it any more."""


class ConversationBatcher(Generic[ConversationT]):
    """Batches of conversations; only one thread at a time makes the model write."""

    def __init__(self, model: Conversationalist[ConversationT]) -> None:
        """Create a batcher without conversations; run `work` in parallel to those who ask."""
        self._model = model
        self._waiting: deque[_Asked[ConversationT]] = deque()
        self._running: list[_Asked[ConversationT]] = []
        self._is_asked = asyncio.Event()
        self.most_at_once = 0
        """Largest number of conversations that were answered in one batch."""

    async def answer(self, conversation: ConversationT) -> AsyncGenerator[Piece]:
        """Yield the answer to a conversation piece by piece. One that is closed leaves the batch.

        Raises:
            EngineError: the model failed.
        """
        asked = _Asked(conversation)
        self._waiting.append(asked)
        self._is_asked.set()
        try:
            while not asked.is_over or not asked.outcomes.empty():
                outcome = await asked.outcomes.get()
                if isinstance(outcome, Exception):
                    raise EngineError(f"the model failed: {type(outcome).__name__}: {outcome}") from outcome
                yield outcome
        finally:
            asked.is_over = True

    async def work(self) -> None:
        """Answer until cancelled. An error of the model goes to all whom it was answering."""
        while True:
            self._fill()
            if not self._running:
                self._is_asked.clear()
                await self._is_asked.wait()
                continue
            batch = self._running
            outcomes = await asyncio.to_thread(self._advanced, [one.conversation for one in batch])
            for asked, outcome in zip(batch, outcomes, strict=True):
                asked.is_over = asked.is_over or isinstance(outcome, Exception) or bool(outcome.finish_reason)
                asked.outcomes.put_nowait(outcome)

    def _fill(self) -> None:
        """Let those go that are over, and those in that wait, as far as there is room."""
        for asked in self._running:
            if asked.is_over:
                self._model.end(asked.conversation)
        self._running = [asked for asked in self._running if not asked.is_over]
        while self._waiting and len(self._running) < self._model.num_at_once:
            asked = self._waiting.popleft()
            if not asked.is_over:
                self._running.append(asked)
        self.most_at_once = max(self.most_at_once, len(self._running))

    def _advanced(self, conversations: Sequence[ConversationT]) -> "Sequence[Piece | Exception]":
        try:
            return self._model.advance(conversations)
        except Exception as error:
            return [error] * len(conversations)
