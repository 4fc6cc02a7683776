"""Play groups of episodes in the real environment, for sim-to-real fine-tuning and for the baseline.

in:  the train tasks, a policy
out: real trajectories, group by group; their rows in `transitions` with origin real
"""

import random
from typing import Any

from models.methods.curricula import open_curriculum
from schemas.recipes.recipe import CurriculumRecipe, PlayRecipe, RolloutRecipe
from schemas.records import AgentTask, Reference
from tasks.data.provenance import made_here
from tasks.data.store_rows import store_rows
from tasks.playing.entity_renaming import draw_entity_renamings
from tasks.playing.play import named_groups, play_real, refused_share
from tasks.running.artifacts import get_tasks, get_trajectories, put_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task

_BETWEEN_PARTS = 100_000_007
"""Seed offset between two parts of a round."""


@versioned_task
def play_real_groups(
    pool: Reference,
    state: dict[str, Any],
    policy: Reference,
    recipe: PlayRecipe,
    curriculum: CurriculumRecipe,
    rollouts: RolloutRecipe,
    num_groups: int,
    stage: str,
    round: int,
    played: list[Reference],
) -> Reference:
    """Play groups of real episodes of original tasks that the curriculum draws, to spend real steps where they teach.

    Args:
        pool: Tasks to draw from.
        state: State of the curriculum.
        policy: Policy that acts.
        recipe: Sections that decide how an episode goes.
        curriculum: Curriculum.
        rollouts: Size of the groups, temperature and entity renaming.
        num_groups: Number of groups to play.
        stage: Name of the stage in reports.
        round: Number of the round, counted from 0.
        played: Groups already played in this round.
    """
    use_threads()
    part = len(played)
    rng = random.Random(f"{recipe.seed}/real/{round}" + (f"/{part}" if part else ""))
    drawn = _drawn(pool, state, curriculum, num_groups, rng, played)
    repeated = [task for task in drawn for _ in range(rollouts.group_size)]
    seed = recipe.seed * 1_000_003 + 500_000 + round + part * _BETWEEN_PARTS
    renamings = draw_entity_renamings(drawn, rollouts.entity_renaming, policy, recipe.environment, seed)
    episodes = play_real(stage, policy, recipe, repeated, rollouts.temperature, seed, renamings)
    grouped = named_groups(episodes, f"real-{round}")
    made_by = made_here(recipe.seed, round, policy.sha256)
    tag = store_rows(grouped, made_by, recipe.retrieval, f"{stage}-{round}" + (f"-{part}" if part else ""))
    return put_trajectories(grouped, table_tag=tag, refused_actions=refused_share(grouped, recipe.environment))


def _drawn(
    pool: Reference,
    state: dict[str, Any],
    curriculum: CurriculumRecipe,
    num_groups: int,
    rng: random.Random,
    played: list[Reference],
) -> list[AgentTask]:
    done = {trajectory.task.task_id for trajectory in get_trajectories(*played)}
    left = [task for task in get_tasks(pool) if task.task_id not in done]
    return open_curriculum(curriculum.method, state).draw(left, num_groups, 0, rng)
