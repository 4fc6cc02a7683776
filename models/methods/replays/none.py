"""No replay: every episode is trained on in its own round only."""

from collections.abc import Sequence

from models.methods.method import NoOptions
from models.methods.replays import Replay


class NoReplay(Replay[NoOptions]):
    """Nothing is trained on again."""

    gives_advantages = False

    @property
    def num_rounds(self) -> int:
        """Zero rounds."""
        return 0

    def advantages(self, earlier: Sequence[float], present: Sequence[float], round: int) -> list[float]:
        """Return zeros."""
        del present, round
        return [0.0] * len(earlier)
