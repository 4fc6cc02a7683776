"""Advantage: how much better each turn was than those that it is compared with."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from models.methods.method import Method, OptionsT, ReadsProgress
from schemas.records import Trajectory


class Advantage(Method[OptionsT], ReadsProgress):
    """Port of methods that say how much better each turn was."""

    needs_differences: ClassVar[bool] = True
    """True if a group in which every advantage is exactly 0 teaches nothing and is left out."""

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
