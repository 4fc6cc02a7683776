"""Rewards as they are, for a loss whose critic turns them into advantages."""

from collections.abc import Sequence

from models.methods.advantages import Advantage
from models.methods.method import NoOptions
from schemas.records import Trajectory


class Critic(Advantage[NoOptions]):
    """Reward of each turn, for the loss `ppo`: its critic is the baseline, so that lost groups teach something, too."""

    Options = NoOptions
    needs_differences = False

    def advantages(self, group: Sequence[Trajectory], rewards: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the rewards."""
        del group
        return [list(turns) for turns in rewards]
