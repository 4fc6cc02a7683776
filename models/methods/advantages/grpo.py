"""Group-relative advantages of GRPO (paper, Eq. 3), and of RLOO."""

import math
from collections.abc import Sequence

from pydantic import Field

from models.methods.advantages import Advantage
from schemas.recipes.section import Section
from schemas.records import Trajectory

_SAME_RETURN = 1e-9
"""Maximum difference of equal returns: sums of the same rewards may differ in their last bits."""


class GrpoOptions(Section):
    """Options of the group-relative advantage."""

    normalise_std: bool = True
    """Divide advantages by the group's standard deviation."""
    leave_one_out: bool = False
    """Compare each episode with the mean of the others in its group (RLOO) instead of the mean of all."""
    negative_scale: float = Field(default=0.5, ge=0)
    """Weight of negative advantages; 1 is the paper's GRPO."""


class Grpo(Advantage[GrpoOptions]):
    """Return of the episode relative to its group, the same for all its turns.

    Differs: negative advantages may weigh less; the paper's weigh the same.
    """

    Options = GrpoOptions

    def advantages(self, group: Sequence[Trajectory], rewards: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the advantage of each episode at each of its turns."""
        relative = self.of_returns([sum(turns) for turns in rewards])
        return [[advantage] * len(turns) for advantage, turns in zip(relative, rewards, strict=True)]

    def of_returns(self, returns_G: Sequence[float]) -> list[float]:
        """Return the advantages of episodes by their returns; all 0 if the returns are equal."""
        if max(returns_G) - min(returns_G) <= _SAME_RETURN:
            return [0.0] * len(returns_G)
        options = self.options
        relative = group_advantages(returns_G, normalise_std=options.normalise_std, leave_one_out=options.leave_one_out)
        return [one if one > 0 else one * options.negative_scale for one in relative]


def group_advantages(
    rewards_G: Sequence[float], *, normalise_std: bool = True, leave_one_out: bool = False
) -> list[float]:
    """Return the reward of each episode relative to its group.

    Args:
        rewards_G: One return per episode.
        normalise_std: Divide by the group's sample standard deviation (plus 1e-4, as TRL does).
        leave_one_out: Compare with the mean of the others (RLOO) instead of the mean of all.

    Raises:
        ValueError: fewer than two episodes: a single one has nothing to be compared with.
    Source: paper, Eq. 3; the reward is the episode's return and holds for each of its action tokens.
    """
    count = len(rewards_G)
    if count < 2:
        raise ValueError(f"a group needs at least 2 episodes, not {count}")
    mean = sum(rewards_G) / count
    scale = count / (count - 1) if leave_one_out else 1.0
    centred = [(reward - mean) * scale for reward in rewards_G]
    if not normalise_std:
        return centred
    std = math.sqrt(sum((reward - mean) ** 2 for reward in rewards_G) / (count - 1))
    return [advantage / (std + 1e-4) for advantage in centred]
