"""Groups of a round: drawing their tasks, their seeds and names, and the share of their refused actions."""

import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from infra.environments.by_name import admissible_actions_of
from models.methods.curricula import open_curriculum
from schemas.recipes.recipe import CurriculumRecipe, EnvironmentRecipe
from schemas.records import AgentTask, Reference, Trajectory
from tasks.running.artifacts import get_tasks

_BETWEEN_SEEDS = 1_000_003
_BETWEEN_PARTS = 100_000_007
"""Seed offsets between two recipe seeds, and between two parts of a round."""


def draw_tasks(
    pool: Reference,
    state: dict[str, Any],
    recipe: CurriculumRecipe,
    num_tasks: int,
    max_generated: int,
    played: Collection[str],
    seed: str,
) -> list[AgentTask]:
    """Return the tasks that the curriculum draws next.

    Args:
        pool: Tasks to draw from.
        state: State of the curriculum.
        recipe: Curriculum.
        num_tasks: Number of tasks to draw.
        max_generated: Maximum number of generated tasks among them.
        played: Ids of tasks that were already played in this round.
        seed: Text that seeds the draw.
    """
    left = [task for task in get_tasks(pool) if task.task_id not in played]
    return open_curriculum(recipe.method, state).draw(left, num_tasks, max_generated, random.Random(seed))


def seed_of_round(seed: int, round: int, part: int = 0) -> int:
    """Return the seed of a part of a round, given the recipe's seed."""
    return seed * _BETWEEN_SEEDS + round + part * _BETWEEN_PARTS


def name_of_part(name: str, part: int, separator: str = "-") -> str:
    """Return the name of a part of a round: that of the round for the first part, which is usually the only one."""
    return f"{name}{separator}{part}" if part else name


def named_groups(episodes: Sequence[Trajectory], round: str) -> list[Trajectory]:
    """Return episodes with the id of their group: those of a task that were rolled out in a round."""
    return [replace(one, group_id=f"{round}/{one.task.task_id}") for one in episodes]


def refused_share(episodes: Sequence[Trajectory], environment: EnvironmentRecipe) -> float:
    """Return the share of actions that changed nothing, or that the environment's states say are refused."""
    listed = admissible_actions_of(environment)
    turns = [turn for episode in episodes for turn in episode.turns]
    refused = sum(
        turn.step.state == (listed.refused(turn.state) if listed else turn.state) and not turn.step.done
        for turn in turns
    )
    return refused / max(1, len(turns))
