"""Reward: what an episode is worth, turn by turn."""

from abc import abstractmethod
from collections.abc import Sequence

from models.methods.method import Method, OptionsT, ReadsProgress
from schemas.records import Trajectory


class Reward(Method[OptionsT], ReadsProgress):
    """Port of methods that say what the episodes of a group are worth."""

    @abstractmethod
    def rewards(self, group: Sequence[Trajectory]) -> list[list[float]]:
        """Return the reward of each turn of each episode; an episode's return is their sum.

        Args:
            group: Whole episodes that are compared with each other; none of them failed.
        """
