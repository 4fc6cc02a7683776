"""Reward entropy: how much a task still teaches (paper, section 4.2, Eq. 7)."""

from collections.abc import Sequence

from models.methods.groupings import rolled_out_together
from schemas.records import Trajectory


def reward_entropy(rewards_G: Sequence[float]) -> float:
    """Return the paper's V: variance of the outcomes of a group (Eq. 7); at most 0.25 for rewards of 0 and 1.

    Example: [1, 1, 0, 0] -> 0.25; [1, 0, 0, 0] -> 0.1875; all equal -> 0.
    """
    mean = sum(rewards_G) / len(rewards_G)
    return sum((reward - mean) ** 2 for reward in rewards_G) / len(rewards_G)


def group_entropies(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return reward entropy by task id, over the episodes of each group that did not fail."""
    return {
        group[0].task.task_id: reward_entropy([trajectory.reward for trajectory in group])
        for group in rolled_out_together([one for one in trajectories if not one.failure])
        if len(group) > 1
    }
