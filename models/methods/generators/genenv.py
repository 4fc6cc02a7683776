"""Reward of GenEnv's simulator: tasks whose success is near a target are worth most."""

import math

from pydantic import Field

from models.methods.generators import Generator, TrainedOptions


class GenenvOptions(TrainedOptions):
    """Options of GenEnv's reward."""

    target: float = Field(default=0.5, gt=0, lt=1)
    """alpha: success that tasks should have."""
    sharpness: float = Field(default=2.0, gt=0)
    """beta: how fast the reward falls beside the target."""


class Genenv(Generator[GenenvOptions]):
    """exp(-beta (p - alpha)^2) for a task whose group won a share p of its episodes.

    Source: GenEnv, and its public code (beta 2, alpha 0.5).
    Differs: updates are supervised, on tasks repeated by their worth; a task that all or none win is worth nothing.
    """

    Options = GenenvOptions

    def band(self, share_won: float) -> float:
        """Return exp(-beta (p - alpha)^2)."""
        return math.exp(-self.options.sharpness * (share_won - self.options.target) ** 2)
