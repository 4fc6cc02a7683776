"""An environment whose games are played in processes of their own, because they leak, hang or die."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from infra.environments.processes import Game, Lost, Processes, Seen
from infra.environments.single_games import NOT_BEGUN
from infra.settings import settings
from schemas.records import AgentTask, Failure, Step


class GamesInProcesses(ABC):
    """Reset and step over a vector of games; see schemas/ports.py. All else is for the environment to say."""

    def __init__(self, make: Callable[[], Game], *, games_per_process: int = 50, timeout_s: float = 60.0) -> None:
        """No process yet; see Processes."""
        self._processes = Processes(
            make, settings().environment_processes, games_per_process=games_per_process, timeout_s=timeout_s
        )
        self._seen: dict[int, Seen] = {}
        self._lost: dict[int, str] = {}
        """Why a slot's game cannot go on."""

    @abstractmethod
    def which(self, task: AgentTask) -> Any:
        """What a process is told, to begin a task's game."""

    def state_of(self, seen: Seen) -> str:
        """The state that is seen: what the game says, unless an environment makes more of it."""
        return seen.said

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Begin each slot's game; see the port. One that cannot be begun fails at its first step."""
        for slot in tasks:
            self._lost.pop(slot, None)
            self._seen[slot] = Seen(NOT_BEGUN, ())
        self._take(self._processes.reset({slot: self.which(task) for slot, task in tasks.items()}))
        return {slot: self._state(slot) for slot in tasks}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Take one action in each slot; a game whose process died or hangs ends as failed, and no other."""
        self._take(self._processes.step({slot: one for slot, one in actions.items() if slot not in self._lost}))
        return {slot: self._failed(slot) if slot in self._lost else self._step(slot) for slot in actions}

    def _take(self, answers: Mapping[int, Seen | Lost]) -> None:
        for slot, answer in answers.items():
            if isinstance(answer, Lost):
                self._lost[slot] = answer.reason
            else:
                self._seen[slot] = answer

    def _state(self, slot: int) -> str:
        seen = self._seen[slot]
        return NOT_BEGUN if seen.said == NOT_BEGUN else self.state_of(seen)

    def _step(self, slot: int) -> Step:
        outcome = self._seen[slot].outcome
        success = outcome == "success"
        return Step(self._state(slot), float(success), done=outcome != "continue", success=success)

    def _failed(self, slot: int) -> Step:
        reason = self._lost[slot]
        return Step(self._state(slot), 0.0, done=True, success=False, reasoning=reason, failure=Failure.ENVIRONMENT)

    def close(self) -> None:
        """End all processes."""
        self._processes.close()

    def expert(self, slot: int) -> str:
        """What the game's expert would do now; see the port."""
        return self._seen[slot].expert or "wait"
