"""ALFWorld as a vectorised environment, with games played in worker processes."""

from pathlib import Path

from infra.environments.alfworld.dealt import assign_splits
from infra.environments.alfworld.files import GameFiles
from infra.environments.alfworld.view import actions_in, generated_task_error, near_misses_in
from infra.environments.games_in_processes import GamesInProcesses
from infra.environments.processes import Game
from schemas.errors import InputError
from schemas.recipes.environments import AlfworldRecipe
from schemas.records import AgentTask
from schemas.state_text import lines_of


def new_game() -> Game:
    """Return a new game. Only the worker process that calls this imports the engine."""
    from infra.environments.alfworld.game import AlfworldGame

    return AlfworldGame()


class AlfworldEnvironment(GamesInProcesses):
    """ALFWorld's text games, with its native text and the admissible actions as state (paper, section 4.1).

    The expert is ALFWorld's hand-coded one, which sees what the agent sees.
    """

    def __init__(self, recipe: AlfworldRecipe) -> None:
        """Create an environment with the recipe's families; processes start with the first game."""
        super().__init__(new_game)
        self._recipe = recipe
        self._opened: dict[str, GameFiles] = {}
        self._dealt: dict[str, list[tuple[str, str]]] = {}

    def tasks(self, split: str, num_tasks: int, first_seed: int = 0) -> list[AgentTask]:
        """Return tasks of a split, dealt to the families in turn.

        Raises:
            InputError: If the split has too few tasks, or the games are not installed.
        """
        dealt = self._deal(split)
        if first_seed + num_tasks > len(dealt):
            raise InputError(
                f"{num_tasks} {split} tasks were requested, from number {first_seed} on, but ALFWorld has {len(dealt)} in "
                f"these families: lower environment.num_{split}_tasks"
            )
        return [self._task(split, *one) for one in dealt[first_seed : first_seed + num_tasks]]

    def _deal(self, split: str) -> list[tuple[str, str]]:
        if split not in self._dealt:
            self._dealt[split] = assign_splits(self._recipe, self._files(split), split)
        return self._dealt[split]

    def _files(self, split: str) -> GameFiles:
        own_name = self._recipe.test_split if split == "test" else "train"
        if own_name not in self._opened:
            self._opened[own_name] = GameFiles(own_name)
        return self._opened[own_name]

    def _task(self, split: str, family: str, name: str) -> AgentTask:
        return AgentTask(f"{split}/{name}", self._files(split).instruction(name), split, family)

    def which(self, task: AgentTask) -> Path:
        """Return the folder of the task's game."""
        return self._files(task.split).folder / _name_of(task)

    def admissible_actions(self, slot: int) -> list[str]:
        """Return the actions that ALFWorld accepts now, without those that it always accepts."""
        return actions_in(lines_of(self._state(slot)))

    def near_misses(self, slot: int) -> list[str]:
        """Return well-formed actions about what is in sight; most are refused now."""
        return near_misses_in(lines_of(self._state(slot)))

    def names(self, task: AgentTask) -> list[str]:
        """Return all things that a task of the split may request.

        Places are left out because rules depend on their names: things are cooled in a fridge.
        """
        return self._files(task.split).things

    def task_error(self, task: AgentTask) -> str | None:
        """Return why a task is none of ALFWorld's in these families, or could not be solved if generated."""
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
