"""Play groups of episodes in the real environment, for sim-to-real fine-tuning and for the baseline.

in:  the train tasks, a policy
out: real trajectories, group by group; their rows in `transitions` with origin real
"""

from typing import Any

from schemas.recipes.learning import CurriculumRecipe, RolloutRecipe
from schemas.recipes.recipe import PlayRecipe
from schemas.records import Reference
from tasks.data.provenance import made_here
from tasks.data.store_rows import store_rows
from tasks.playing.draw_tasks import draw_tasks
from tasks.playing.entity_renaming import draw_entity_renamings
from tasks.playing.groups import name_of_part, named_groups, refused_share, seed_of_round
from tasks.playing.play import play_real
from tasks.running.artifacts import get_trajectories, put_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task

_BESIDE_DREAMS = 500_000
"""Seed offset between dreamt and real episodes of a round."""


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
    already = {trajectory.task.task_id for trajectory in get_trajectories(*played)}
    draw_seed = name_of_part(f"{recipe.seed}/real/{round}", part, "/")
    drawn = draw_tasks(pool, state, curriculum, num_groups, 0, already, draw_seed)
    repeated = [task for task in drawn for _ in range(rollouts.group_size)]
    seed = seed_of_round(recipe.seed, round, part) + _BESIDE_DREAMS
    renamings = draw_entity_renamings(drawn, rollouts.entity_renaming, policy, recipe.environment, seed)
    episodes = play_real(stage, policy, recipe, repeated, rollouts.temperature, seed, renamings)
    grouped = named_groups(episodes, f"real-{round}")
    made_by = made_here(recipe.seed, round, policy.sha256)
    tag = store_rows(grouped, made_by, recipe.retrieval, name_of_part(f"{stage}-{round}", part))
    return put_trajectories(grouped, table_tag=tag, refused_actions=refused_share(grouped, recipe.environment))
