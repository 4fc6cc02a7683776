"""Nothing else: only the loss trains the policy."""

from collections.abc import Sequence

from models.methods.auxiliaries import Auxiliary
from models.methods.method import NoOptions
from models.methods.streams import TrainingStream
from models.text.prompts import PromptFormat
from schemas.records import Trajectory


class NoAuxiliary(Auxiliary[NoOptions]):
    """Nothing is learnt besides."""

    def streams(
        self, trajectory: Trajectory, format: PromptFormat, demonstrated: Sequence[Sequence[float]] = ()
    ) -> list[TrainingStream]:
        """Return nothing."""
        del trajectory, format, demonstrated
        return []
