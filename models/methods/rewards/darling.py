"""Diversity-aware reward of DARLING (arXiv 2509.02534)."""

from collections import Counter
from collections.abc import Sequence

from models.methods.rewards import Reward
from schemas.records import Trajectory


class Darling(Reward):
    """Outcome times how many of the group's episodes acted otherwise, so that rare wins count most.

    Use it with `rl.advantage.normalise_std = false`, as the paper does.

    Source: arXiv 2509.02534, section 3: quality times normalised diversity.
    Differs: two episodes are alike if their actions are equal, where the paper asks a learnt classifier; diversity is
        divided by the group's largest.
    """

    def rewards(self, group: Sequence[Trajectory]) -> list[list[float]]:
        """Return the environment's rewards, scaled by the episode's diversity."""
        scales = self.diversities([tuple(trajectory.actions) for trajectory in group])
        return [
            [scale * turn.step.reward for turn in trajectory.turns]
            for scale, trajectory in zip(scales, group, strict=True)
        ]

    @staticmethod
    def diversities(actions: Sequence[tuple[str, ...]]) -> list[float]:
        """Return the number of episodes that acted otherwise, divided by the group's largest; 1 if all acted alike."""
        alike = Counter(actions)
        others = [len(actions) - alike[one] for one in actions]
        most = max(others)
        return [one / most for one in others] if most else [1.0] * len(actions)
