"""Replay: which episodes of earlier rounds are trained on again."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from models.methods.method import Method, OptionsT


class Replay(Method[OptionsT]):
    """Port of methods that train on episodes again."""

    gives_advantages: ClassVar[bool] = True
    """True if it says how good an episode was by itself, so that the loss must not have a critic do so."""

    @property
    @abstractmethod
    def num_rounds(self) -> int:
        """Number of earlier rounds to choose from; 0 for none."""

    @abstractmethod
    def advantages(self, earlier: Sequence[float], present: Sequence[float], round: int) -> list[float]:
        """Return an advantage for each earlier episode; one with 0 is not trained on again.

        Args:
            earlier: Returns of the episodes of earlier rounds, oldest first.
            present: Returns of the episodes of this round.
            round: Number of the round, counted from 0.
        """
