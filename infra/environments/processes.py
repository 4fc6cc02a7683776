"""Games in processes of their own: several in each, which is replaced after a while because games leak memory.

A process that dies or hangs is killed and takes its own episodes with it, and no others; the next episode finds a new one.
Where a game raises, the process ends the others that it plays, and begins none.
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
"""What each request beside another adds to the patience for one: many take far less than the longest may."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a game shows after a reset or an action."""

    said: str
    """What the environment says, word for word."""
    admissible: tuple[str, ...]
    """Actions that it would accept now."""
    expert: str = ""
    """What an expert would do now."""
    outcome: Outcome = "continue"
    asked: str = ""
    """What is to be done, where only the game knows."""
    planned: tuple[str, ...] = ()
    """What an expert would do later, whether it would be accepted now or not; empty where no one knows."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Why there is nothing to be seen any more."""

    reason: str
    refused: bool = False
    """There is no such game; the process is as good as before."""


class Game(Protocol):
    """One game after another, in a process where nothing else waits for it. Whatever it raises ends its episode."""

    def reset(self, which: Any) -> Seen:
        """Begin a game.

        Raises:
            InputError: there is no such game.
        """
        ...

    def step(self, action: str) -> Seen:
        """Take an action in it."""
        ...

    def close(self) -> None:
        """Give back what it holds of its process; nobody plays it any more."""
        ...


_Verb = Literal["reset", "step", "close"]
_Request = tuple[_Verb, int, Any]
"""What to do in which slot, with what."""
_maker: list[Callable[[], Game]] = []
"""The one that makes games, in a process that plays them."""
_games: dict[int, Game] = {}


def _begin(make: Callable[[], Game], parent: int) -> None:
    """In a new process: remember what to play, ignore Ctrl-C, which is our parent's to heed, and end when it has."""
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
    return Lost("nobody plays it any more")


class _Process:
    """One process and the slots whose games it plays."""

    def __init__(self, make: Callable[[], Game]) -> None:
        self._executor = ProcessPoolExecutor(1, get_context("spawn"), _begin, (make, os.getpid()))
        self.slots: set[int] = set()
        self.num_begun = 0

    def take(self, slot: int) -> None:
        """A slot, to begin a game in."""
        self.slots.add(slot)
        self.num_begun += 1

    def ask(self, requests: list[_Request]) -> "Future[dict[int, Seen | Lost]]":
        try:
            return self._executor.submit(_answer, requests)
        except BrokenProcessPool as died:  # and was found dead before it was asked
            answer: Future[dict[int, Seen | Lost]] = Future()
            answer.set_exception(died)
            return answer

    def end(self) -> None:
        """Kill it, whatever it does, even if it did not answer yet."""
        for process in list((self._executor._processes or {}).values()):  # which has no public name before Python 3.14
            process.kill()
        self._executor.shutdown(wait=False, cancel_futures=True)


class Processes:
    """Plays games by slot, each slot's in one process."""

    def __init__(
        self, make: Callable[[], Game], num_processes: int, *, games_per_process: int = 50, timeout_s: float = 60.0
    ) -> None:
        """No process yet.

        Args:
            make: Makes a game, in the process that plays it; something that can be imported.
            num_processes: At a time, but for those that end their last episodes.
            games_per_process: Begun in one before another takes its place.
            timeout_s: Longest silence for one thing that is asked of a process, and a sixth of it for each at once with it.
        """
        self._make, self._timeout_s = make, timeout_s
        self._num_processes, self._games_per_process = num_processes, games_per_process
        self._open: list[_Process] = []
        self._home: dict[int, _Process] = {}

    def reset(self, games: Mapping[int, Any]) -> dict[int, Seen | Lost]:
        """Begin a game in each slot, whatever was played there."""
        for slot in games:
            self._leave(slot)
        for slot in games:
            self._home[slot] = process = self._least_busy()
            process.take(slot)
        return self._ask([("reset", slot, which) for slot, which in games.items()])

    def step(self, actions: Mapping[int, str]) -> dict[int, Seen | Lost]:
        """Take an action in each slot, all of which have a game that is not lost."""
        return self._ask([("step", slot, action) for slot, action in actions.items()])

    def leave(self, slots: Iterable[int]) -> None:
        """Nobody plays in these slots any more."""
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
        """Take a slot from its process, which ends if that was its last and no game is to begin in it any more."""
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
        """Begin no game in it any more."""
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
