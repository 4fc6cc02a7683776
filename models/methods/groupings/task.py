"""Groups of episodes of the same agent task (paper, Eq. 3)."""

from collections.abc import Sequence

from models.methods.groupings import Grouping, rolled_out_together
from schemas.records import Trajectory


class Task(Grouping):
    """Episodes that were rolled out together, of the same agent task."""

    def groups(self, trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
        """Return the trajectories by group id, in the order in which the groups first appear."""
        return rolled_out_together(trajectories)
