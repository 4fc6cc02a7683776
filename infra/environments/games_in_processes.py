"""Base class of environments whose games run in separate processes, because games leak memory, hang or crash."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from infra.environments.processes import Game, Lost, Processes, Seen
from infra.environments.single_games import NOT_BEGUN
from infra.settings import settings
from schemas.records import AgentTask, Failure, Step


class GamesInProcesses(ABC):
    """Reset and step over a vector of games; subclasses implement the rest of the port (schemas/ports.py)."""

    def __init__(self, make: Callable[[], Game], *, games_per_process: int = 50, timeout_s: float = 60.0) -> None:
        """Prepare the processes, none of which is started yet; see Processes."""
        self._processes = Processes(
            make, settings().environment_processes, games_per_process=games_per_process, timeout_s=timeout_s
        )
        self._seen: dict[int, Seen] = {}
        self._lost: dict[int, str] = {}
        """Reason why a slot's game cannot go on."""

    @abstractmethod
    def which(self, task: AgentTask) -> Any:
        """Return the argument with which a process begins a task's game."""

    def state_of(self, seen: Seen) -> str:
        """Return the state for an observation: the text of the game, unless a subclass overrides this."""
        return seen.said

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Begin a game in each slot. A game that cannot begin fails at its first step."""
        for slot in tasks:
            self._lost.pop(slot, None)
            self._seen[slot] = Seen(NOT_BEGUN, ())
        self._take(self._processes.reset({slot: self.which(task) for slot, task in tasks.items()}))
        return {slot: self._state(slot) for slot in tasks}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Take one action in each slot. Only a game that raises, or whose process died or hangs, fails."""
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
        """Return the expert's next action, or `wait` if it has none."""
        return self._seen[slot].expert or "wait"
