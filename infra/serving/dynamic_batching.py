"""Dynamic batching for one environment with many players: requests that arrive while it works form its next batch."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from schemas.ports import Environment
from schemas.records import AgentTask, Step

_Answer = str | Step


@dataclass(frozen=True, slots=True)
class _Question:
    """Task to start, or action to take; at most one pending per slot."""

    request: AgentTask | str
    answer: "asyncio.Future[_Answer]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class DynamicBatcher:
    """Batches the requests of many players, each in its own slot; only one thread uses the environment.

    No request waits for others: those that arrive while the environment is busy form the next batch.
    """

    def __init__(self, environment: Environment, num_slots: int) -> None:
        """Create a batcher with free slots; run `work` in parallel to the players."""
        self._environment = environment
        self._free = list(range(num_slots))
        self._waiting: dict[int, _Question] = {}
        self._is_asked = asyncio.Event()

    def enter(self) -> int | None:
        """Take a slot; return None if all are taken."""
        return self._free.pop() if self._free else None

    def leave(self, slot: int) -> None:
        """Free a slot and drop its pending request."""
        self._waiting.pop(slot, None)
        self._free.append(slot)

    async def begin(self, slot: int, task: AgentTask) -> str:
        """Start an episode and return its first state."""
        state = await self._ask(slot, task)
        assert isinstance(state, str)
        return state

    async def step(self, slot: int, action: str) -> Step:
        """Take an action and return the step."""
        step = await self._ask(slot, action)
        assert isinstance(step, Step)
        return step

    async def _ask(self, slot: int, asked: AgentTask | str) -> _Answer:
        question = self._waiting[slot] = _Question(asked)
        self._is_asked.set()
        return await question.answer

    async def work(self) -> None:
        """Answer requests until cancelled. An error of the environment goes to the player who caused it."""
        while True:
            await self._is_asked.wait()
            self._is_asked.clear()
            questions, self._waiting = self._waiting, {}
            asked = {slot: question.request for slot, question in questions.items()}
            outcomes = await asyncio.to_thread(self._outcomes, asked)
            for slot, question in questions.items():
                _settle(question.answer, outcomes[slot])

    def _outcomes(self, asked: Mapping[int, AgentTask | str]) -> "dict[int, _Answer | Exception]":
        """Answer requests together; if that fails, one by one, so that only the faulty request gets the error."""
        try:
            return {**self._answers(asked)}
        except Exception as error:
            if len(asked) == 1:
                return dict.fromkeys(asked, error)
            alone = (self._outcomes({slot: one}) for slot, one in asked.items())
            return {slot: outcome for one in alone for slot, outcome in one.items()}

    def _answers(self, asked: Mapping[int, AgentTask | str]) -> dict[int, _Answer]:
        begun = {slot: one for slot, one in asked.items() if isinstance(one, AgentTask)}
        acted = {slot: one for slot, one in asked.items() if isinstance(one, str)}
        answers: dict[int, _Answer] = {}
        if begun:
            answers |= self._environment.reset(begun)
        if acted:
            answers |= self._environment.step(acted)
        return answers


def _settle(answer: "asyncio.Future[_Answer]", outcome: "_Answer | Exception") -> None:
    """Set the outcome of a request, unless its caller has gone."""
    with suppress(asyncio.InvalidStateError):
        answer.set_exception(outcome) if isinstance(outcome, Exception) else answer.set_result(outcome)
