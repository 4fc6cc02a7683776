"""The door to ALFWorld: reset and step over a vector of games, which are played in processes of their own."""

from collections.abc import Mapping

from infra.environments.alfworld.dealt import deal
from infra.environments.alfworld.files import GameFiles
from infra.environments.alfworld.view import (
    NOT_BEGUN,
    actions_in,
    generated_task_error,
    near_misses_in,
    state_text,
)
from infra.environments.processes import Game, Lost, Processes, Seen
from infra.settings import settings
from schemas.environments import AlfworldRecipe
from schemas.errors import InputError
from schemas.records import AgentTask, Failure, Step
from schemas.state_text import lines_of


def new_game() -> Game:
    """In a process of its own, which alone has to import what plays it."""
    from infra.environments.alfworld.game import AlfworldGame

    return AlfworldGame()


class AlfworldEnvironment:
    """ALFWorld's text games, with its native text and the admissible actions as state (paper, section 4.1)."""

    def __init__(self, recipe: AlfworldRecipe) -> None:
        """An environment of some of its families; processes are started with the first game."""
        self._recipe = recipe
        self._opened: dict[str, GameFiles] = {}
        self._dealt: dict[str, list[tuple[str, str]]] = {}
        self._processes = Processes(new_game, settings().environment_processes)
        self._seen: dict[int, Seen] = {}
        self._lost: dict[int, str] = {}
        """Why a slot's game cannot go on."""

    def tasks(self, split: str, num_tasks: int, first_seed: int = 0) -> list[AgentTask]:
        """The first tasks of a split, dealt to the families in turn.

        Raises:
            InputError: there are not so many, or the games are not here.
        """
        dealt = self._deal(split)
        if first_seed + num_tasks > len(dealt):
            raise InputError(
                f"{num_tasks} {split} tasks were asked for, from number {first_seed} on, and ALFWorld has {len(dealt)} in "
                f"these families: lower environment.num_{split}_tasks"
            )
        return [self._task(split, *one) for one in dealt[first_seed : first_seed + num_tasks]]

    def _deal(self, split: str) -> list[tuple[str, str]]:
        if split not in self._dealt:
            self._dealt[split] = deal(self._recipe, self._files(split), split)
        return self._dealt[split]

    def _files(self, split: str) -> GameFiles:
        own_name = self._recipe.test_split if split == "test" else "train"
        if own_name not in self._opened:
            self._opened[own_name] = GameFiles(own_name)
        return self._opened[own_name]

    def _task(self, split: str, family: str, name: str) -> AgentTask:
        return AgentTask(f"{split}/{name}", self._files(split).instruction(name), split, family)

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Begin each slot's game; see the port. One that cannot be begun fails at its first step."""
        folders = {slot: self._files(task.split).folder / _name_of(task) for slot, task in tasks.items()}
        for slot in tasks:
            self._lost.pop(slot, None)
        self._take(self._processes.reset(folders))
        return {slot: NOT_BEGUN if slot in self._lost else self._state(slot) for slot in tasks}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Take one action in each slot; a game whose process died or hangs ends as failed, and no other."""
        alive = {slot: action for slot, action in actions.items() if slot not in self._lost}
        self._take(self._processes.step(alive))
        return {slot: self._failed(slot) if slot in self._lost else self._step(slot) for slot in actions}

    def _take(self, answers: Mapping[int, Seen | Lost]) -> None:
        for slot, answer in answers.items():
            if isinstance(answer, Lost):
                self._lost[slot] = answer.reason
            else:
                self._seen[slot] = answer

    def _state(self, slot: int) -> str:
        return state_text(self._seen[slot].said, self._seen[slot].admissible)

    def _step(self, slot: int) -> Step:
        won = self._seen[slot].won
        return Step(self._state(slot), float(won), done=won, success=won)

    def _failed(self, slot: int) -> Step:
        state = self._state(slot) if slot in self._seen else NOT_BEGUN
        reason = self._lost[slot]
        return Step(state, 0.0, done=True, success=False, reasoning=reason, failure=Failure.ENVIRONMENT)

    def close(self) -> None:
        """End all processes."""
        self._processes.close()

    def expert(self, slot: int) -> str:
        """The next action of ALFWorld's hand-coded expert, who sees what the agent sees."""
        return self._seen[slot].expert

    def admissible_actions(self, slot: int) -> list[str]:
        """Actions that ALFWorld accepts now and that are not always accepted."""
        return actions_in(lines_of(self._state(slot)))

    def near_misses(self, slot: int) -> list[str]:
        """Well-formed actions about what is in sight; most are refused now."""
        return near_misses_in(lines_of(self._state(slot)))

    def names(self, task: AgentTask) -> list[str]:
        """None: that a mug is cooled in a fridge, and is put on a desk, depends on what they are called."""
        return []

    def task_error(self, task: AgentTask) -> str | None:
        """Why a task is none of ALFWorld's in these families, or a generated one could not be solved."""
        if not task.generated:
            return self._own_task_error(task)
        try:
            return generated_task_error(task.instruction, lines_of(task.initial_state))
        except ValueError as error:
            return str(error)

    def _own_task_error(self, task: AgentTask) -> str | None:
        if (task.family, _name_of(task)) not in self._deal(task.split):
            return f"no {task.split} task of family {task.family!r} is called {task.task_id!r}"
        if task.instruction != self._files(task.split).instruction(_name_of(task)):
            return f"task {task.task_id!r} has another instruction"
        return None


def _name_of(task: AgentTask) -> str:
    return task.task_id.partition("/")[2]
