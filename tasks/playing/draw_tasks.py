"""Draw the tasks of a part of a round by the curriculum."""

import random
from collections.abc import Collection
from typing import Any

from models.methods.curricula import open_curriculum
from schemas.recipes.learning import CurriculumRecipe
from schemas.records import AgentTask, Reference
from tasks.running.artifacts import get_tasks


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
