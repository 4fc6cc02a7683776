"""Empty reasoning traces: nothing is known of an environment but its logs.

A teacher can write traces instead (`annotate.annotator = "teacher"`).
"""

from collections.abc import Sequence

from schemas.records import Trajectory


class FactsAnnotator:
    """Annotator without facts to explain a transition by."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """Return one empty trace per turn."""
        return [[""] * len(one.turns) for one in trajectories]
