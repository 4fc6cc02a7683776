"""Advantage: how much better each turn was than those that it is compared with."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from models.methods.method import Method, OptionsT, ReadsProgress
from schemas.records import AgentTask, Trajectory

StateValues = dict[tuple[str, str], float]
"""Chance to win by task id and state."""


class Advantage(Method[OptionsT], ReadsProgress):
    """Port of methods that say how much better each turn was."""

    needs_differences: ClassVar[bool] = True
    """True if a group in which every advantage is exactly 0 teaches nothing and is left out."""

    needs_values: ClassVar[bool] = False
    """True if it asks for the values of states, which are dreamt from before it is called."""

    def __init__(self, options: OptionsT) -> None:
        """Create an advantage that knows no values."""
        super().__init__(options)
        self.values: StateValues = {}
        """Values of the states that it asked for; none in the real environment."""

    @property
    def num_continuations(self) -> int:
        """Number of dreams from each state that it asks for."""
        return 0

    @property
    def dreamt_rounds(self) -> int | None:
        """Number of rounds in which values are dreamt before a judge says them; None: they are always dreamt."""
        return None

    def states_to_value(self, groups: Sequence[Sequence[Trajectory]]) -> list[AgentTask]:
        """Return the states of a round that it needs values of, as tasks that start there; none by default.

        The id of each task's parent is that of the task that was played.
        """
        del groups
        return []

    @abstractmethod
    def advantages(self, group: Sequence[Trajectory], rewards: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the advantage of each turn of each episode, which holds for all tokens of its action.

        Args:
            group: Whole episodes that are compared with each other; none of them failed.
            rewards: Reward of each turn of each episode.
        """

    def over_round(self, groups: Sequence[list[list[float]]]) -> list[list[list[float]]]:
        """Return the advantages of all groups of a round that train, given those of each by itself; by default as given."""
        return [*groups]
