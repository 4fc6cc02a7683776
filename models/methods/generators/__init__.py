"""Generator: what a generated task is worth to the model that wrote it."""

from abc import abstractmethod
from typing import ClassVar

from pydantic import Field

from models.methods.method import Method, OptionsT
from schemas.recipes.section import Section


class TrainedOptions(Section):
    """Options of a task generator that is trained."""

    learning_rate: float = Field(default=1e-4, gt=0)
    """Peak learning rate of each training."""
    epochs: float = Field(default=1.0, gt=0)
    """Passes over the examples of each training."""
    max_copies: int = Field(default=4, ge=1)
    """Number of copies in the training of a task that is worth 1; others have fewer, in proportion."""


class Generator(Method[OptionsT]):
    """Port of methods that reward the task generator, which is trained at each calibration if they give rewards."""

    trains: ClassVar[bool] = True
    """True if the generator is trained."""

    def worth(self, share_won: float) -> float:
        """Return the reward of a valid and new task, from 0 to 1; 0 if all or none of its group's episodes won.

        Other tasks are never played, and are worth 0.

        Args:
            share_won: Share of the episodes of its group that won.
        """
        return 0.0 if share_won in (0.0, 1.0) else self.band(share_won)

    @abstractmethod
    def band(self, share_won: float) -> float:
        """Return the reward by the share that won, from 0 to 1."""
