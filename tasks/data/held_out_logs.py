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

SPLITS = ("train", "valid", "test")
LEAST = 2
"""Minimum number of tasks in each split."""


def with_splits(trajectories: Sequence[Trajectory], environment: LogsRecipe) -> list[Trajectory]:
    """Return episodes whose tasks are in the splits that the log names, or else drawn by the digests of their ids.

    Raises:
        DataError: a split has fewer than two tasks.
    """
    named = is_dealt(trajectories)
    dealt = [one if named else _in_its_split(one, environment) for one in trajectories]
    for split in SPLITS:
        tasks = {one.task.task_id for one in dealt if one.task.split == split}
        if len(tasks) < LEAST:
            raise DataError(
                f"split {split} has {len(tasks)} of the {len({one.task.task_id for one in dealt})} logged tasks, and needs "
                f"{LEAST}: log more tasks, or change environment.valid_share and environment.test_share"
            )
    return dealt


def is_dealt(trajectories: Sequence[Trajectory]) -> bool:
    """Return whether the log itself names splits."""
    return any(one.task.split != "train" for one in trajectories)


def _in_its_split(episode: Trajectory, environment: LogsRecipe) -> Trajectory:
    task = episode.task
    return replace(episode, task=replace(task, split=split_of(task.task_id, environment)))


def split_of(task_id: str, environment: LogsRecipe) -> str:
    """Return the split of a task, which depends on its id alone."""
    place = place_of(task_id)
    if place < environment.test_share:
        return "test"
    return "valid" if place < environment.test_share + environment.valid_share else "train"


def place_of(task_id: str) -> float:
    """Return a task's place between 0 and 1; the lowest are held out for the report, the next for calibration."""
    return int.from_bytes(hashlib.sha256(task_id.encode()).digest()[:8]) / 2**64


@versioned_task
def hold_out(logs: Reference) -> dict[str, Reference]:
    """Return the logged episodes by split."""
    episodes = get_trajectories(logs)
    return {split: put_trajectories([one for one in episodes if one.task.split == split]) for split in SPLITS}
