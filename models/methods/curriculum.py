"""The curriculum: how much a task still teaches, and which tasks come next (paper, section 4.2, Eq. 7)."""

import random
from collections.abc import Mapping, Sequence

from schemas.records import AgentTask, Trajectory


def reward_entropy(rewards_G: Sequence[float]) -> float:
    """Return the paper's V: variance of the outcomes of a group (Eq. 7); at most 0.25 for rewards of 0 and 1.

    Example: [1, 1, 0, 0] -> 0.25; [1, 0, 0, 0] -> 0.1875; all equal -> 0.
    """
    mean = sum(rewards_G) / len(rewards_G)
    return sum((reward - mean) ** 2 for reward in rewards_G) / len(rewards_G)


def group_entropies(groups: Sequence[Sequence[Trajectory]]) -> dict[str, float]:
    """Return reward entropy by task id, over episodes that did not fail: enough to choose what to play next."""
    return {
        group[0].task.task_id: reward_entropy([t.reward for t in group])
        for group in ([t for t in group if not t.failure] for group in groups)
        if len(group) > 1
    }


def draw_tasks(
    tasks: Sequence[AgentTask],
    entropies: Mapping[str, float],
    num_tasks: int,
    max_generated_share: float,
    floor: float,
    rng: random.Random,
) -> list[AgentTask]:
    """Draw distinct tasks for a round, with weights proportional to reward entropy.

    Args:
        tasks: Original and generated tasks to draw from.
        entropies: Latest reward entropy by task id. An untried task counts as the maximum of these, but at least as
            0.25, the maximum for returns of 0 and 1.
        num_tasks: Number of tasks to draw; fewer if there are not enough.
        max_generated_share: Maximum share of generated tasks in the round: the paper's lambda.
        floor: Minimum weight of a task, so that none is forgotten.
        rng: Source of randomness.
    """
    most = max([0.25, *entropies.values()])
    weights = {task.task_id: max(floor, entropies.get(task.task_id, most)) for task in tasks}
    # Efraimidis and Spirakis: the largest u^(1/w) are a weighted draw without replacement.
    order = sorted(tasks, key=lambda task: rng.random() ** (1 / weights[task.task_id]), reverse=True)
    num_generated = min(int(max_generated_share * num_tasks), sum(task.generated for task in tasks))
    generated = [task for task in order if task.generated][:num_generated]
    originals = [task for task in order if not task.generated]
    return (generated + originals)[:num_tasks]


def tasks_to_vary(tasks: Sequence[AgentTask], entropies: Mapping[str, float], num_tasks: int) -> list[AgentTask]:
    """Return the original tasks at the edge of the policy's ability, highest reward entropy first."""
    edge = [task for task in tasks if entropies.get(task.task_id, 0.0) > 0 and not task.generated]
    return sorted(edge, key=lambda task: -entropies[task.task_id])[:num_tasks]
