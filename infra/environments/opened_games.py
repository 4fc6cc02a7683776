"""Games in processes whose instruction is known only once they begin: each is opened once to read it."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from infra.environments.games_in_processes import GamesInProcesses
from infra.environments.generated_tasks import generated_task_error
from infra.environments.processes import Game, Lost, Seen
from schemas.errors import EnvironmentUnavailable, InputError
from schemas.records import AgentTask

_NUM_TRIES = 3


class OpenedGames(GamesInProcesses):
    """Environment whose tasks are known by family and number, and dealt to the families in turn."""

    def __init__(
        self, make: Callable[[], Game], families: Sequence[str], *, games_per_process: int, at_once: int = 32
    ) -> None:
        """Open up to `at_once` games at a time, in slots that no episode uses; see GamesInProcesses for the rest."""
        super().__init__(make, games_per_process=games_per_process)
        self._families, self._at_once = families, at_once
        self._first: dict[str, Seen] = {}
        """First observation of each opened game, by task id."""

    @abstractmethod
    def which(self, task: AgentTask) -> tuple[Any, ...]:
        """Return the argument with which a process begins a task's game; the task may have no instruction yet."""

    def tasks(self, split: str, num_tasks: int, first_seed: int = 0) -> list[AgentTask]:
        """Return the tasks of a split, from number `first_seed` on.

        Raises:
            InputError: If the split has too few tasks.
            EnvironmentUnavailable: If a game cannot begin.
        """
        places = range(first_seed, first_seed + num_tasks)
        bare = [self._bare(split, place) for place in places]
        self._open(bare)
        return [replace(task, instruction=self._first[task.task_id].asked) for task in bare]

    def _bare(self, split: str, place: int) -> AgentTask:
        seed, family = divmod(place, len(self._families))
        name = self._families[family]
        return AgentTask(_task_id(name, split, seed), "", split, name, seed)

    def _open(self, tasks: Sequence[AgentTask]) -> None:
        unknown = [task for task in tasks if task.task_id not in self._first]
        try:
            for start in range(0, len(unknown), self._at_once):
                self._open_some(unknown[start : start + self._at_once])
        finally:
            self._processes.leave(range(-self._at_once, 0))

    def _open_some(self, tasks: Sequence[AgentTask]) -> None:
        lost: dict[str, Lost] = {}
        for _ in range(_NUM_TRIES):
            left = {-1 - i: task for i, task in enumerate(tasks) if task.task_id not in self._first}
            begun = self._processes.reset({slot: self.which(task) for slot, task in left.items()})
            self._take({slot: seen for slot, seen in begun.items() if slot not in left})  # lost with a dead process
            opened = {task.task_id: begun[slot] for slot, task in left.items()}
            lost = {name: seen for name, seen in opened.items() if isinstance(seen, Lost)}
            self._first |= {name: seen for name, seen in opened.items() if isinstance(seen, Seen)}
            _refuse(lost)
        for name, one in lost.items():
            raise EnvironmentUnavailable(f"{name} cannot be started: {one.reason}")

    def first_state(self, task: AgentTask) -> str:
        """Return the first state of a task's game."""
        self._open([task])
        return self.state_of(self._first[task.task_id])

    def names(self, task: AgentTask) -> list[str]:
        """Return no names, unless an environment overrides this."""
        return []

    def task_error(self, task: AgentTask) -> str | None:
        """Return why a task is invalid; None if it is fine.

        A generated task is only checked for an instruction and a well-formed first state.
        """
        if task.generated:
            return generated_task_error(task)
        if task.family not in self._families or task.task_id != _task_id(task.family, task.split, task.seed):
            return f"no task of these families is called {task.task_id!r}"
        try:
            self._open([task])
        except InputError as there_is_none:
            return str(there_is_none)
        begun = self._first[task.task_id]
        if task.instruction != begun.asked:
            return f"task {task.task_id!r} asks for something else"
        return None if task.initial_state in ("", self.state_of(begun)) else "it starts in another state"


def _refuse(lost: Mapping[str, Lost]) -> None:
    for name, one in lost.items():
        if one.refused:
            raise InputError(f"{name}: {one.reason}")


def _task_id(family: str, split: str, seed: int) -> str:
    return f"{family}/{split}/{seed}"
