"""The reward that the environment, dreamt or real, gave (paper, section 4.1)."""

from collections.abc import Sequence

from models.methods.rewards import Reward
from schemas.records import Trajectory


class Outcome(Reward):
    """Reward as the environment gave it: in a dream 1 on the step that succeeds, else 0."""

    def rewards(self, group: Sequence[Trajectory]) -> list[list[float]]:
        """Return the reward of each turn of each episode."""
        return [[turn.step.reward for turn in trajectory.turns] for trajectory in group]
