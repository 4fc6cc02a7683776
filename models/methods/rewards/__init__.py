"""Reward: what an episode is worth, turn by turn."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from models.methods.method import Method, OptionsT
from schemas.ports import Progress
from schemas.records import Trajectory


class Reward(Method[OptionsT]):
    """Port of methods that say what the episodes of a group are worth."""

    needs_progress: ClassVar[bool] = False
    """True if it can only be used where states tell how far they are towards the goal."""
    progress: Progress | None = None
    """Reader of progress, of environments that have one."""

    @abstractmethod
    def rewards(self, group: Sequence[Trajectory]) -> list[list[float]]:
        """Return the reward of each turn of each episode; an episode's return is their sum.

        Args:
            group: Whole episodes that are compared with each other; none of them failed.
        """
