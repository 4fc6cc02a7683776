"""Refill of rounds until enough groups teach something, as in DAPO's dynamic sampling (arXiv 2503.14476)."""

from collections.abc import Sequence

from pydantic import Field

from models.methods.curricula.reward_entropy import RewardEntropy, RewardEntropyOptions
from models.methods.entropies import reward_entropy
from models.methods.groupings import rolled_out_together
from schemas.records import Trajectory


class RefillOptions(RewardEntropyOptions):
    """Options of the refill."""

    max_draws: float = Field(default=3.0, ge=1)
    """Maximum number of groups drawn per group wanted, so that a round ends though few tasks teach anything."""


class Refill(RewardEntropy):
    """Tasks drawn by reward entropy, and further ones until enough groups have episodes of different returns.

    Source: arXiv 2503.14476, section 3.2.
    Differs: what is missing is drawn, where DAPO draws whole batches; the number of draws is bounded.
    """

    Options = RefillOptions
    options: RefillOptions

    def num_missing(self, trajectories: Sequence[Trajectory], num_wanted: int) -> int:
        """Return the number of groups that are wanted and uninformative, up to the maximum of draws."""
        groups = rolled_out_together(trajectories)
        num_informative = sum(map(_is_informative, groups))
        most = int(self.options.max_draws * num_wanted) - len(groups)
        return max(0, min(num_wanted - num_informative, most))


def _is_informative(group: Sequence[Trajectory]) -> bool:
    is_whole = not any(trajectory.failure for trajectory in group)
    return is_whole and reward_entropy([trajectory.reward for trajectory in group]) > 0
