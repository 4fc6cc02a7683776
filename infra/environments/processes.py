"""Games in worker processes, several in each. Processes are replaced after a while because games leak memory.

A process that dies or hangs is killed. Only its own episodes are lost, and the next episode gets a new process. If a
game raises, its process finishes the other games that it plays and begins no new ones.
"""

import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as StillSilent
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Literal, Protocol

from infra.environments.single_games import Outcome
from schemas.errors import InputError

_LOOK_FOR_PARENT_EVERY_S = 1.0
_FURTHER = 1 / 6
"""Share of the timeout that each further request in a batch adds: most requests take far less than the longest."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Observation of a game after a reset or an action."""

    said: str
    """Text of the game: the state, unless the environment derives the state from it."""
    admissible: tuple[str, ...]
    """Actions that the game would accept now."""
    expert: str = ""
    """Next action of an expert; empty if there is none."""
    outcome: Outcome = "continue"
    asked: str = ""
    """Instruction of a game that is known only once it begins."""
    planned: tuple[str, ...] = ()
    """Later actions of an expert, accepted now or not; empty if unknown."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Answer in place of an observation, with the reason why the game cannot go on."""

    reason: str
    refused: bool = False
    """True if there is no such game; the process is unaffected."""


class Game(Protocol):
    """Player of one game after another, in a process where nothing else waits for it.

    Any exception that it raises ends its episode.
    """

    def reset(self, which: Any) -> Seen:
        """Begin a game.

        Raises:
            InputError: If there is no such game.
        """
        ...

    def step(self, action: str) -> Seen:
        """Take an action in the current game."""
        ...

    def close(self) -> None:
        """Release what the player holds in its process; it is not used again."""
        ...


_Verb = Literal["reset", "step", "close"]
_Request = tuple[_Verb, int, Any]
"""Verb, slot and argument of a request."""
_maker: list[Callable[[], Game]] = []
"""Factory of games in a worker process, as the only entry."""
_games: dict[int, Game] = {}


def _begin(make: Callable[[], Game], parent: int) -> None:
    """Set up a new process: store the factory, ignore Ctrl-C (the parent handles it), and exit when the parent has."""
    _maker.append(make)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=[parent], daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT_EVERY_S)
    os._exit(1)


def _answer(requests: list[_Request]) -> dict[int, Seen | Lost]:
    return {slot: _answer_one(verb, slot, what) for verb, slot, what in requests}


def _answer_one(verb: _Verb, slot: int, what: Any) -> Seen | Lost:
    try:
        if verb == "close":
            return _close(slot)
        game = _games[slot] = _games.get(slot) or _maker[0]()
        return game.reset(what) if verb == "reset" else game.step(what)
    except InputError as error:
        return Lost(str(error), refused=True)
    except Exception as error:
        _games.pop(slot, None)
        return Lost(f"{type(error).__name__}: {error}")


def _close(slot: int) -> Lost:
    if game := _games.pop(slot, None):
        game.close()
    return Lost("it is no longer played")


class _Process:
    """Worker process, and the slots whose games it plays."""

    def __init__(self, make: Callable[[], Game]) -> None:
        self._executor = ProcessPoolExecutor(1, get_context("spawn"), _begin, (make, os.getpid()))
        self.slots: set[int] = set()
        self.num_begun = 0

    def take(self, slot: int) -> None:
        """Assign a slot in which a game is about to begin."""
        self.slots.add(slot)
        self.num_begun += 1

    def ask(self, requests: list[_Request]) -> "Future[dict[int, Seen | Lost]]":
        try:
            return self._executor.submit(_answer, requests)
        except BrokenProcessPool as died:  # before this request was sent
            answer: Future[dict[int, Seen | Lost]] = Future()
            answer.set_exception(died)
            return answer

    def end(self) -> None:
        """Kill the process, even if it has not answered yet."""
        for process in list((self._executor._processes or {}).values()):  # not public before Python 3.14
            process.kill()
        self._executor.shutdown(wait=False, cancel_futures=True)


class Processes:
    """Pool of worker processes that play games by slot, each slot in one process."""

    def __init__(
        self, make: Callable[[], Game], num_processes: int, *, games_per_process: int = 50, timeout_s: float = 60.0
    ) -> None:
        """Prepare the pool; no process is started yet.

        Args:
            make: Factory of games, called in the process that plays them; it must be importable.
            num_processes: Maximum number at a time, not counting processes that only finish their last episodes.
            games_per_process: Number of games begun in a process before another one takes its place.
            timeout_s: Longest wait for one request to a process; each further simultaneous request adds a sixth.
        """
        self._make, self._timeout_s = make, timeout_s
        self._num_processes, self._games_per_process = num_processes, games_per_process
        self._open: list[_Process] = []
        self._home: dict[int, _Process] = {}

    def reset(self, games: Mapping[int, Any]) -> dict[int, Seen | Lost]:
        """Begin a game in each slot, in place of any earlier one."""
        for slot in games:
            self._leave(slot)
        for slot in games:
            self._home[slot] = process = self._least_busy()
            process.take(slot)
        return self._ask([("reset", slot, which) for slot, which in games.items()])

    def step(self, actions: Mapping[int, str]) -> dict[int, Seen | Lost]:
        """Take an action in each slot. Every slot must have a game that is not lost."""
        return self._ask([("step", slot, action) for slot, action in actions.items()])

    def leave(self, slots: Iterable[int]) -> None:
        """Release slots whose games are no longer played."""
        for slot in slots:
            if process := self._home.get(slot):
                process.ask([("close", slot, None)])
            self._leave(slot)

    def close(self) -> None:
        """End all processes."""
        for process in {*self._open, *self._home.values()}:
            process.end()
        self._open, self._home = [], {}

    def _least_busy(self) -> _Process:
        if len(self._open) < self._num_processes:
            self._open.append(_Process(self._make))
        chosen = min(self._open, key=lambda one: len(one.slots))
        if chosen.num_begun + 1 == self._games_per_process:
            self._retire(chosen)
        return chosen

    def _leave(self, slot: int) -> None:
        """Detach a slot from its process, which ends if it has no other slots and begins no further games."""
        process = self._home.pop(slot, None)
        if process is None:
            return
        process.slots.discard(slot)
        if not process.slots and process not in self._open:
            process.end()

    def _ask(self, requests: list[_Request]) -> dict[int, Seen | Lost]:
        by_process: dict[_Process, list[_Request]] = defaultdict(list)
        for request in requests:
            by_process[self._home[request[1]]].append(request)
        began = time.monotonic()
        asked = {process: process.ask(some) for process, some in by_process.items()}
        answers: dict[int, Seen | Lost] = {}
        for process, answer in asked.items():
            answers |= self._wait(process, answer, len(by_process[process]), began)
        for slot, one in answers.items():
            if isinstance(one, Lost) and not one.refused:
                self._retire(self._home[slot])
            if isinstance(one, Lost) or one.outcome != "continue":
                self._leave(slot)
        return answers

    def _retire(self, process: _Process) -> None:
        """Begin no further games in a process."""
        self._open = [one for one in self._open if one is not process]

    def _wait(
        self, process: _Process, answer: "Future[dict[int, Seen | Lost]]", num_requests: int, began: float
    ) -> dict[int, Seen | Lost]:
        patience_s = self._timeout_s * (1 + _FURTHER * (num_requests - 1))
        try:
            return answer.result(max(0.0, began + patience_s - time.monotonic()))
        except StillSilent:
            reason = f"no answer for {patience_s:.0f} s"
        except BrokenProcessPool:
            reason = "its process died"
        process.end()
        return {slot: Lost(reason) for slot in process.slots}
