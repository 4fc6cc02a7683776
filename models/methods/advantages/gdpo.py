"""Advantages of several rewards, each normalised by itself: GDPO."""

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from pydantic import Field

from models.methods.advantages import Advantage
from models.methods.advantages.grpo import group_advantages
from schemas.recipes.section import Section
from schemas.records import Trajectory

_EPSILON = 1e-4


class GdpoOptions(Section):
    """Options of GDPO."""

    progress_weight: float = Field(default=0.5, ge=0, lt=1)
    """Weight of the progress of an episode's last state, beside 1 for its return."""


class Gdpo(Advantage[GdpoOptions]):
    """Return and progress, each relative to its group; their weighted sum is whitened over the round.

    A sum of the rewards would let the one that varies most decide.

    Source: GDPO, and its public code (NVlabs/GDPO).
    Differs: the rewards are the episode's return and its progress, the share of the task's subgoals that the last state
        shows done.
    """

    Options = GdpoOptions
    needs_progress = True

    def advantages(self, group: Sequence[Trajectory], rewards: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the weighted sum of both advantages of each episode, at each of its turns."""
        measure: Any = self.progress
        returns = [sum(turns) for turns in rewards]
        progress = [measure.score(one.task, one.turns[-1].step.state) for one in group]
        return [[one] * len(turns) for one, turns in zip(self.combined(returns, progress), rewards, strict=True)]

    def combined(self, returns_G: Sequence[float], progress_G: Sequence[float]) -> list[float]:
        """Return the weighted sum of the advantages by return and by progress."""
        pairs = zip(group_advantages(returns_G), group_advantages(progress_G), strict=True)
        return [one + self.options.progress_weight * other for one, other in pairs]

    def over_round(self, groups: Sequence[list[list[float]]]) -> list[list[list[float]]]:
        """Return the advantages of all episodes of a round, whitened."""
        episodes = [turns[0] for group in groups for turns in group]
        if len(episodes) < 2:
            return [*groups]
        middle, spread = mean(episodes), stdev(episodes) + _EPSILON
        return [[[(one - middle) / spread for one in turns] for turns in group] for group in groups]
