"""A real environment made of single games: all that a new one has to say is how one of them goes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Literal

from infra.environments.verdicts import verdict
from schemas.recipes.environments import PluginRecipe
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from schemas.state_text import lines_of

Outcome = Literal["continue", "success", "failure"]
NOT_BEGUN = "- saw: nothing, for the game could not be begun"
"""The state of a game whose first step fails."""


class Game(ABC):
    """One game that is being played."""

    @abstractmethod
    def state(self) -> str:
        """What decides which actions work, seen or remembered: lines `- name: value`, each name once."""

    @abstractmethod
    def act(self, action: str) -> Outcome:
        """Take an action; one that is impossible changes nothing and never raises."""

    @abstractmethod
    def actions(self) -> list[str]:
        """Actions that would change the state now."""

    @abstractmethod
    def expert(self) -> str:
        """What an expert would do now."""

    def close(self) -> None:  # noqa: B027  (most have nothing to give back)
        """Give back what the game holds; it is over."""


class _NotBegun(Game):
    """One that could not be begun: it says why at its first step."""

    def __init__(self, why: Exception) -> None:
        self._why = why

    def state(self) -> str:
        return NOT_BEGUN

    def act(self, action: str) -> Outcome:
        raise self._why

    def actions(self) -> list[str]:
        return []

    def expert(self) -> str:
        return "wait"


class GameEnvironment(ABC):
    """Games as an environment, and the annotator of what was played in it; see schemas/ports.py."""

    def __init__(self, recipe: PluginRecipe) -> None:
        """An environment as a recipe wants it: its families of tasks, and its options."""
        self._families, self._options = recipe.families, recipe.options
        self._games: dict[int, Game] = {}
        self._states: dict[int, str] = {}

    @abstractmethod
    def instruction(self, split: str, family: str, seed: int) -> str:
        """What is to be done in a game: the same for the same arguments, and no train task's in valid and test."""

    @abstractmethod
    def game(self, task: AgentTask) -> Game:
        """A game of a task, from its beginning."""

    def names(self, task: AgentTask) -> list[str]:
        """See the port; none unless you say which."""
        return []

    def explain(self, turn: Turn) -> str:
        """Why an action had the effect that it had: evidence first. Say more than this, and the dream will be better."""
        return f"{verdict(turn)}."

    def tasks(self, split: str, num_tasks: int, first_seed: int = 0) -> list[AgentTask]:
        """See the port."""
        count = len(self._families)
        places = range(first_seed, first_seed + num_tasks)
        return [self._task(split, self._families[place % count], place // count) for place in places]

    def _task(self, split: str, family: str, seed: int) -> AgentTask:
        return AgentTask(f"{family}/{split}/{seed}", self.instruction(split, family, seed), split, family, seed)

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """See the port. A game that cannot be begun fails at its first step."""
        for slot in self._games.keys() & tasks.keys():
            self._games.pop(slot).close()
        for slot, task in tasks.items():
            self._games[slot], self._states[slot] = self._begun(task)
        return {slot: self._states[slot] for slot in tasks}

    def _begun(self, task: AgentTask) -> tuple[Game, str]:
        with ExitStack() as undone:
            try:
                game = self.game(task)
                undone.callback(game.close)
                state = game.state()
            except Exception as error:
                return _NotBegun(error), NOT_BEGUN
            undone.pop_all()
            return game, state

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """See the port. A game that raises after all fails its own episode."""
        steps = {slot: _stepped(self._games[slot], self._states[slot], action) for slot, action in actions.items()}
        self._states |= {slot: step.state for slot, step in steps.items()}
        return steps

    def expert(self, slot: int) -> str:
        """See the port."""
        return self._games[slot].expert()

    def admissible_actions(self, slot: int) -> list[str]:
        """See the port."""
        return self._games[slot].actions()

    def near_misses(self, slot: int) -> list[str]:
        """What is possible in other games that are under way; see the port."""
        others = {action for game in self._games.values() for action in game.actions()}
        return sorted(others) or self._games[slot].actions()

    def task_error(self, task: AgentTask) -> str | None:
        """See the port; of a generated task only whether it begins in a state at all."""
        if task.generated:
            return _state_error(task.initial_state)
        if task.family not in self._families:
            return f"family {task.family!r} is not in the recipe"
        if task.instruction != self.instruction(task.split, task.family, task.seed):
            return f"seed {task.seed} of family {task.family!r} has another instruction"
        with closing(self.game(task)) as game:
            return None if task.initial_state in ("", game.state()) else "it starts in another state"

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn; see the port of annotators."""
        return [[self.explain(turn) for turn in one.turns] for one in trajectories]


def _stepped(game: Game, state: str, action: str) -> Step:
    """From a state, which stays where the game raises."""
    try:
        outcome = game.act(action)
        state = game.state()
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return Step(state, 0.0, done=True, success=False, reasoning=said, failure=Failure.ENVIRONMENT)
    success = outcome == "success"
    return Step(state, float(success), done=outcome != "continue", success=success)


def _state_error(state: str) -> str | None:
    try:
        return None if lines_of(state) else "it has no first state"
    except ValueError as error:
        return str(error)
