"""A task generator that is not trained: the paper's."""

from models.methods.generators import Generator
from models.methods.method import NoOptions


class Frozen(Generator[NoOptions]):
    """The experience model generates tasks as it was fitted to."""

    trains = False

    def band(self, share_won: float) -> float:
        """Return 0."""
        del share_won
        return 0.0
