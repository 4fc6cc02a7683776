"""Grouping: which episodes are compared with each other."""

from abc import abstractmethod
from collections.abc import Sequence

from models.methods.method import Method, OptionsT
from schemas.records import Trajectory


class Grouping(Method[OptionsT]):
    """Port of methods that say which episodes of a round are compared with each other."""

    @abstractmethod
    def groups(self, trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
        """Return the trajectories of a round in groups, each trajectory in one of them."""
