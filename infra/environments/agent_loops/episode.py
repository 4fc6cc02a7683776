"""Episode of an agent loop, which runs in a thread of its own: its requests come out, and the policy's answers go in."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread

from infra.environments.single_games import Game, Outcome
from schemas.chat import Messages, Piece, conversation_state
from schemas.errors import InputError
from schemas.records import MALFORMED


@dataclass(frozen=True, slots=True)
class _Request:
    messages: Messages
    answer: "Future[Piece]" = field(default_factory=Future)


class LoopEpisode(Game):
    """Game whose states are the conversations that an agent sends, and whose actions are the answers."""

    def __init__(self, timeout_s: float) -> None:
        """Create an episode whose loop does not run yet.

        Args:
            timeout_s: Seconds within which the loop must ask or end, after it began and after each answer.
        """
        self._timeout_s = timeout_s
        self._events = SimpleQueue[_Request | bool | Exception]()
        self._request: _Request | None = None
        self._is_closed = False

    def begin(self, loop: Callable[[], bool]) -> None:
        """Run a loop; it returns whether it succeeded."""
        Thread(target=self._run, args=[loop], daemon=True).start()

    def _run(self, loop: Callable[[], bool]) -> None:
        try:
            succeeded = loop()
            ended = (
                succeeded if isinstance(succeeded, bool) else TypeError(f"True or False expected, not {succeeded!r}")
            )
        except Exception as error:
            ended = error
        self._events.put(ended)

    def ask(self, messages: Messages) -> "Future[Piece]":
        """Return the answer to a request of the loop, once the policy has written it. Any thread may ask.

        Raises:
            InputError: the episode is over.
        """
        if self._is_closed:
            raise _over()
        request = _Request(messages)
        self._events.put(request)
        return request.answer

    def state(self) -> str:
        """Return the conversation that waits for an answer, or the last one if none does.

        Raises:
            RuntimeError: the loop ended without a request.
            Exception: the error that ended the loop, or it took too long.
        """
        if self._request is None:
            event = self._next()
            if not isinstance(event, _Request):
                raise RuntimeError("the agent ended without a request to the policy")
            self._request = event
        return conversation_state(self._messages)

    @property
    def _messages(self) -> Messages:
        """Conversation of the present request, with its answer if it has one."""
        assert self._request
        asked, answer = self._request.messages, self._request.answer
        if not answer.done() or answer.exception():
            return asked
        return [*asked, {"role": "assistant", "content": answer.result().text}]

    def answer(self, action: str) -> None:
        """Give the answer to the present request; one without an action is an empty one that was cut."""
        if self._request and not self._request.answer.done():
            malformed = action == MALFORMED
            piece = Piece("", 0, 0, "length") if malformed else Piece(action, 0, 0, "stop")
            self._request.answer.set_result(piece)

    def act(self, action: str) -> Outcome:
        """Give the answer unless it was given, and wait for the next request or the end of the loop.

        Raises:
            Exception: the error that ended the loop, or it took too long.
        """
        self.answer(action)
        event = self._next()
        if isinstance(event, _Request):
            self._request = event
            return "continue"
        return "success" if event else "failure"

    def _next(self) -> _Request | bool:
        try:
            event = self._events.get(timeout=self._timeout_s)
        except Empty:
            raise TimeoutError(f"the agent neither asked nor ended within {self._timeout_s:g} s") from None
        if isinstance(event, Exception):
            raise event
        return event

    def actions(self) -> list[str]:
        """Return no actions, because an agent may be answered anything."""
        return []

    def expert(self) -> str:
        """Raise, because there is no expert.

        Raises:
            InputError: Always.
        """
        raise InputError('an agent loop has no expert to fill the logs: set ingest.played_by = "base", or ingest.path')

    def close(self) -> None:
        """Refuse all requests that have no answer, and those to come: the loop ends by its client's error."""
        self._is_closed = True
        pending = [self._request]
        while not self._events.empty():
            event = self._events.get()
            pending.append(event if isinstance(event, _Request) else None)
        for request in pending:
            if request and not request.answer.done():
                request.answer.set_exception(_over())


def _over() -> InputError:
    return InputError("this episode is over: it had its steps, or was stopped")
