"""Base classes of real environments that consist of single games: a subclass only defines how one game works."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Literal

from infra.environments.verdicts import verdict
from schemas.recipes.environments import PluginRecipe
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from schemas.state_text import lines_of

Outcome = Literal["continue", "success", "failure"]
NOT_BEGUN = "- saw: nothing, for the game could not be begun"
"""State of a game that could not begin; its first step fails."""


def by_final_reward(reward: float, success_reward: float) -> Outcome:
    """Return the outcome of a game that ended with a reward.

    Raises:
        ValueError: the reward is no finite number, which says nothing about the episode: it is broken, not lost.
    """
    if not math.isfinite(reward):
        raise ValueError(f"the episode ended with a reward of {reward}")
    return "success" if reward >= success_reward else "failure"


class Game(ABC):
    """One game in progress."""

    @abstractmethod
    def state(self) -> str:
        """Return all that decides which actions work, seen or remembered: lines `- name: value`, each name once."""

    @abstractmethod
    def act(self, action: str) -> Outcome:
        """Take an action. An impossible action changes nothing and never raises."""

    @abstractmethod
    def actions(self) -> list[str]:
        """Return the actions that would change the state now."""

    @abstractmethod
    def expert(self) -> str:
        """Return the action that an expert would take now."""

    def close(self) -> None:  # noqa: B027  (most have nothing to give back)
        """Release the resources of a game that is over."""


class _NotBegun(Game):
    """Game that could not begin; its first step raises the reason."""

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
    """Environment of single games, and the annotator of its trajectories; see schemas/ports.py."""

    def __init__(self, recipe: PluginRecipe) -> None:
        """Create an environment with the task families and options of a recipe."""
        self._families, self._options = recipe.families, recipe.options
        self._games: dict[int, Game] = {}
        self._states: dict[int, str] = {}

    @abstractmethod
    def instruction(self, split: str, family: str, seed: int) -> str:
        """Return a game's instruction: always the same, and in valid and test never one of a train task."""

    @abstractmethod
    def game(self, task: AgentTask) -> Game:
        """Begin a task's game and return it."""

    def names(self, task: AgentTask) -> list[str]:
        """Return names that no rule depends on, so that they may be replaced; none by default."""
        return []

    def explain(self, turn: Turn) -> str:
        """Return why an action had its effect, evidence first.

        The default is only a verdict. Override it: the more it says, the better the experience model.
        """
        return f"{verdict(turn)}."

    def tasks(self, split: str, num_tasks: int, first_seed: int = 0) -> list[AgentTask]:
        """Return tasks of a split, dealt to the families in turn."""
        count = len(self._families)
        places = range(first_seed, first_seed + num_tasks)
        return [self._task(split, self._families[place % count], place // count) for place in places]

    def _task(self, split: str, family: str, seed: int) -> AgentTask:
        return AgentTask(f"{family}/{split}/{seed}", self.instruction(split, family, seed), split, family, seed)

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Begin a game in each slot. A game that cannot begin fails at its first step."""
        for slot in self._games.keys() & tasks.keys():
            self._games.pop(slot).close()
        self._games |= {slot: self._begun(task) for slot, task in tasks.items()}
        self._states |= {slot: self._first_state(slot) for slot in tasks}
        return {slot: self._states[slot] for slot in tasks}

    def _begun(self, task: AgentTask) -> Game:
        try:
            return self.game(task)
        except Exception as error:
            return _NotBegun(error)

    def _first_state(self, slot: int) -> str:
        try:
            return self._games[slot].state()
        except Exception as error:
            self._games[slot].close()
            self._games[slot] = _NotBegun(error)
            return NOT_BEGUN

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Take one action in each slot. A game that raises fails only its own episode."""
        steps = {slot: _stepped(self._games[slot], self._states[slot], action) for slot, action in actions.items()}
        self._states |= {slot: step.state for slot, step in steps.items()}
        return steps

    def expert(self, slot: int) -> str:
        """Return the action that an expert would take now in a slot."""
        return self._games[slot].expert()

    def admissible_actions(self, slot: int) -> list[str]:
        """Return the actions that would change a slot's state now."""
        return self._games[slot].actions()

    def near_misses(self, slot: int) -> list[str]:
        """Return the actions that are possible in any game in progress."""
        others = {action for game in self._games.values() for action in game.actions()}
        return sorted(others) or self._games[slot].actions()

    def task_error(self, task: AgentTask) -> str | None:
        """Return why a task is invalid; None if it is fine.

        A generated task is only checked for a well-formed first state.
        """
        if task.generated:
            return _state_error(task.initial_state)
        if wrong := self.naming_error(task):
            return wrong
        with closing(self.game(task)) as game:
            return None if task.initial_state in ("", game.state()) else "it starts in another state"

    def naming_error(self, task: AgentTask) -> str | None:
        """Return what is wrong with a task's family or instruction; None if nothing is."""
        if task.family not in self._families:
            return f"family {task.family!r} is not in the recipe"
        if task.instruction != self.instruction(task.split, task.family, task.seed):
            return f"seed {task.seed} of family {task.family!r} has another instruction"
        return None

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """Return one reasoning trace per turn."""
        return [[self.explain(turn) for turn in one.turns] for one in trajectories]


def _stepped(game: Game, state: str, action: str) -> Step:
    """Return the step after an action. If the game raises, the step is a failure in the same state."""
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
