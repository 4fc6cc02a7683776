"""Hybrid reward of HERO (arXiv 2510.07242): the outcome decides, and progress tells equals apart."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from models.methods.rewards import Reward
from schemas.recipes.section import Section
from schemas.records import Trajectory

_EPSILON = 1e-6


class HeroOptions(Section):
    """Options of the hybrid reward."""

    lost_spread: float = Field(default=0.1, ge=0, lt=0.5)
    """alpha: lost episodes are worth -alpha to alpha, by their progress."""
    won_spread: float = Field(default=0.1, ge=0, lt=0.5)
    """beta: won episodes are worth 1 - beta to 1 + beta, by their progress. No lost episode is worth as much as a won
    one."""


class Hero(Reward[HeroOptions]):
    """Outcome, and among the won and among the lost episodes of a group the progress of each.

    A group that lost as a whole teaches which of its episodes came furthest.

    Source: arXiv 2510.07242, section 3: rewards are normalised within each stratum of the verifier.
    Differs: progress is the share of the task's subgoals that the last state shows done, where the paper asks a reward
        model; no weight by difficulty, which the division by a group's standard deviation would cancel.
    """

    Options = HeroOptions
    needs_progress = True

    def rewards(self, group: Sequence[Trajectory]) -> list[list[float]]:
        """Return the worth of each episode at its last turn, and 0 before."""
        outcomes = [trajectory.success for trajectory in group]
        worths = self.worths(outcomes, [self._progress_of(trajectory) for trajectory in group])
        return [[0.0] * (len(one.turns) - 1) + [worth] for one, worth in zip(group, worths, strict=True)]

    def worths(self, outcomes: Sequence[bool], progress: Sequence[float]) -> list[float]:
        """Return what episodes with these outcomes and this progress are worth."""
        found = [0.0] * len(outcomes)
        for won, middle, spread in ((False, 0.0, self.options.lost_spread), (True, 1.0, self.options.won_spread)):
            stratum = [place for place, outcome in enumerate(outcomes) if outcome is won]
            for place, share in zip(stratum, _normalised([progress[place] for place in stratum]), strict=True):
                found[place] = middle + spread * (2 * share - 1)
        return found

    def _progress_of(self, trajectory: Trajectory) -> float:
        measure: Any = self.progress
        return measure.score(trajectory.task, trajectory.turns[-1].step.state)


def _normalised(values: Sequence[float]) -> list[float]:
    """Return values between 0 for the smallest and 1 for the largest; the middle if all are alike."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(one - low) / (high - low + _EPSILON) if high > low else 0.5 for one in values]
