"""Self-imitation of SPEAR (arXiv 2509.22601): the better episodes of earlier rounds are trained on again."""

import math
from collections.abc import Sequence
from statistics import median

from pydantic import Field

from models.methods.replays import Replay
from schemas.recipes.section import Section


class SelfImitationOptions(Section):
    """Options of self-imitation."""

    rounds: int = Field(default=5, ge=1)
    """Number of rounds that an episode is kept."""
    max_episodes: int = Field(default=2_048, ge=1)
    """Maximum number of episodes trained on again; the latest count."""
    baseline_episodes: int = Field(default=10_240, ge=1)
    """Number of latest episodes whose median return is the baseline."""
    warmup_rounds: int = Field(default=10, ge=0)
    """Number of rounds in which the weight of what is replayed rises from 0 to 1, along half a cosine."""


class SelfImitation(Replay[SelfImitationOptions]):
    """Episodes with a return above the median of late are trained on again, by what they exceed it.

    Where most episodes win, nothing exceeds the median, so that it helps while wins are rare.

    Source: arXiv 2509.22601, section 4: advantages are computed anew, as the policy has moved on.
    Differs: replayed and fresh tokens share one mean; no clipping by covariance; all episodes of earlier rounds are
        candidates, where the paper keeps those with an advantage above a threshold.
    """

    Options = SelfImitationOptions

    @property
    def num_rounds(self) -> int:
        """Number of rounds that an episode is kept."""
        return self.options.rounds

    def advantages(self, earlier: Sequence[float], present: Sequence[float], round: int) -> list[float]:
        """Return what each return exceeds the baseline by, times the weight of the round."""
        baseline = median([*earlier, *present][-self.options.baseline_episodes :])
        weight = self.weight(round)
        found = [weight * max(0.0, one - baseline) for one in earlier]
        better = [place for place, one in enumerate(found) if one > 0]
        kept = set(better[-self.options.max_episodes :])
        return [one if place in kept else 0.0 for place, one in enumerate(found)]

    def weight(self, round: int) -> float:
        """Return the weight in a round, counted from 0: (1 - cos(pi t / T)) / 2, and 1 from T on."""
        share = min(1.0, round / self.options.warmup_rounds) if self.options.warmup_rounds else 1.0
        return 0.5 * (1 - math.cos(math.pi * share))
