"""Reward of SPICE's challenger: tasks that are won half of the time are worth most."""

import math

from pydantic import Field

from models.methods.generators import Generator, TrainedOptions

_MOST = 0.25
"""Variance of outcomes that are won half of the time."""


class SpiceOptions(TrainedOptions):
    """Options of SPICE's reward."""

    spread: float = Field(default=0.1, gt=0)
    """sigma: standard deviation of the Gaussian over the variance of the outcomes."""


class Spice(Generator[SpiceOptions]):
    """Gaussian in the variance of a group's outcomes, with its maximum where half of the episodes win.

    Source: SPICE, arXiv 2510.24684; each task varies a real start, as the paper's are grounded in documents.
    Differs: updates are supervised, on tasks repeated by their worth, where the paper has policy gradients; a task that all
        or none win is worth nothing, and malformed ones are worth 0 and not less.
    """

    Options = SpiceOptions

    def band(self, share_won: float) -> float:
        """Return exp(-(p (1 - p) - 0.25)^2 / (2 sigma^2))."""
        return math.exp(-((share_won * (1 - share_won) - _MOST) ** 2) / (2 * self.options.spread**2))
