"""Hold out logged episodes: without an environment, they are all that models can be judged on.

in:  all logged episodes
out: those to learn from, those for calibration (valid), those for the report (test)
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from schemas.errors import DataError
from schemas.recipes.environments import LogsRecipe
from schemas.records import Reference, Trajectory
from tasks.running.artifacts import get_trajectories, put_trajectories
from tasks.running.versioned import versioned_task

_SPLITS = ("train", "valid", "test")
_LEAST = 2
"""Minimum number of tasks in each split."""


def with_splits(trajectories: Sequence[Trajectory], environment: LogsRecipe) -> list[Trajectory]:
    """Return episodes whose tasks are in the splits that the log names, or else drawn by the digests of their ids.

    Raises:
        DataError: a split has fewer than two tasks.
    """
    named = any(one.task.split != "train" for one in trajectories)
    dealt = [one if named else _in_its_split(one, environment) for one in trajectories]
    for split in _SPLITS:
        tasks = {one.task.task_id for one in dealt if one.task.split == split}
        if len(tasks) < _LEAST:
            raise DataError(
                f"split {split} has {len(tasks)} of the {len({one.task.task_id for one in dealt})} logged tasks, and needs "
                f"{_LEAST}: log more tasks, or change environment.valid_share and environment.test_share"
            )
    return dealt


def _in_its_split(episode: Trajectory, environment: LogsRecipe) -> Trajectory:
    task = episode.task
    return replace(episode, task=replace(task, split=split_of(task.task_id, environment)))


def split_of(task_id: str, environment: LogsRecipe) -> str:
    """Return the split of a task, which depends on its id alone."""
    place = int.from_bytes(hashlib.sha256(task_id.encode()).digest()[:8]) / 2**64
    if place < environment.test_share:
        return "test"
    return "valid" if place < environment.test_share + environment.valid_share else "train"


@versioned_task
def hold_out(logs: Reference) -> dict[str, Reference]:
    """Return the logged episodes by split."""
    episodes = get_trajectories(logs)
    return {split: put_trajectories([one for one in episodes if one.task.split == split]) for split in _SPLITS}
