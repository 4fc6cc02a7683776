"""Pairs of tasks that teach the task generator how one is varied into another (paper, section 4.3)."""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import numpy as np

from models.retrieval.encoders import HashingEncoder
from schemas.records import AgentTask, Trajectory

Start = tuple[AgentTask, str]
"""Task and the state that it starts in."""

_NUM_NEAREST = 3
"""Number of nearest tasks among which one is drawn."""


def variation_pairs(
    episodes: Sequence[Trajectory], which: Literal["random", "nearest"], rng: random.Random
) -> list[tuple[Start, Start]]:
    """Return each task with another one of its family.

    Args:
        episodes: Episodes whose tasks are paired.
        which: random: any task of the family, also itself. nearest: one of the three whose instruction and first state
            are most alike; a task without another in its family is left out.
        rng: Source of randomness.
    """
    starts = {episode.task.task_id: (episode.task, episode.turns[0].state) for episode in episodes}
    by_family: dict[str, list[Start]] = defaultdict(list)
    for start in starts.values():
        by_family[start[0].family].append(start)
    if which == "random":
        return [(start, rng.choice(by_family[start[0].family])) for start in starts.values()]
    return [pair for family in by_family.values() for pair in _nearest_pairs(family, rng)]


def _nearest_pairs(family: Sequence[Start], rng: random.Random) -> list[tuple[Start, Start]]:
    if len(family) < 2:
        return []
    encoder = HashingEncoder()
    instructions, states = (
        encoder.encode(texts) for texts in ([t.instruction for t, _ in family], [s for _, s in family])
    )
    likeness = instructions @ instructions.T + states @ states.T
    np.fill_diagonal(likeness, -np.inf)
    nearest = np.argsort(-likeness, axis=1)[:, : min(_NUM_NEAREST, len(family) - 1)]
    return [(start, family[rng.choice(others)]) for start, others in zip(family, nearest.tolist(), strict=True)]
