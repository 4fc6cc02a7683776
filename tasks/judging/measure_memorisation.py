"""Measure how far the starting policy knows its demonstrations by heart.

in:  its demonstrations, its on-policy episodes, which were played anyway
out: real success on logged tasks that were cloned, and on those that were not
"""

from collections.abc import Sequence

from models.measurement.intervals import success_rate
from schemas.recipes.learning import StartRecipe
from schemas.records import Reference
from tasks.learning.clone_policy import logged_demonstrations
from tasks.running.artifacts import get_trajectories
from tasks.running.versioned import versioned_task


@versioned_task
def measure_memorisation(
    demonstrations: list[Reference], played: Reference, start: StartRecipe, temperatures: Sequence[float]
) -> dict[str, float]:
    """Return real success on cloned tasks and on other train tasks, with intervals; no entries without episodes.

    Args:
        demonstrations: Logged trajectories that the policy was cloned from.
        played: On-policy episodes of the starting policy, those of the first temperature first.
        start: Number of cloned tasks.
        temperatures: Temperatures of these episodes; those of the first one count.
    """
    cloned = {one.task.task_id for one in logged_demonstrations(demonstrations, start)}
    episodes = get_trajectories(played)
    first = [one for one in episodes[: -(-len(episodes) // len(temperatures))] if not one.failure]
    wins = {
        "cloned": [float(one.success) for one in first if one.task.task_id in cloned],
        "other": [float(one.success) for one in first if one.task.task_id not in cloned],
    }
    measured: dict[str, float] = {}
    for name, successes in wins.items():
        if successes:
            rate = success_rate(successes)
            measured |= {f"{name}_success": rate.mean, f"{name}_low": rate.low, f"{name}_high": rate.high}
            measured[f"num_{name}"] = len(successes)
    return measured
