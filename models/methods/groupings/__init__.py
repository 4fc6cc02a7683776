"""Grouping: which episodes are compared with each other."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence

from models.methods.method import Method, OptionsT
from schemas.records import Trajectory


class Grouping(Method[OptionsT]):
    """Port of methods that say which episodes of a round are compared with each other."""

    @abstractmethod
    def groups(self, trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
        """Return the trajectories of a round in groups, each trajectory in one of them."""


def rolled_out_together(trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
    """Return trajectories by group id, in the order in which the groups first appear."""
    groups: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        groups[trajectory.group_id].append(trajectory)
    return list(groups.values())
