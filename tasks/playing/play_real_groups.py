"""Play groups of episodes in the real environment, for sim-to-real fine-tuning and for the baseline.

in:  the train tasks, a policy
out: real trajectories, group by group; their rows in `transitions` with origin real
"""

import random

from models.methods.curriculum import draw_tasks
from schemas.recipes.recipe import CurriculumRecipe, GrpoRecipe, PlayRecipe
from schemas.records import Reference
from tasks.data.provenance import made_here
from tasks.data.store_rows import store_rows
from tasks.playing.entity_renaming import draw_entity_renamings
from tasks.playing.play import play_real
from tasks.running.artifacts import get_tasks, put_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task


@versioned_task
def play_real_groups(
    tasks: Reference,
    entropies: dict[str, float],
    policy: Reference,
    recipe: PlayRecipe,
    curriculum: CurriculumRecipe,
    grpo: GrpoRecipe,
    stage: str,
    round: int,
) -> Reference:
    """Play groups of real episodes of original tasks, drawn by reward entropy, to spend real steps where they teach."""
    use_threads()
    rng = random.Random(f"{recipe.seed}/real/{round}")
    drawn = draw_tasks(get_tasks(tasks), entropies, grpo.groups_per_round, 0.0, curriculum.floor, rng)
    repeated = [task for task in drawn for _ in range(grpo.group_size)]
    seed = recipe.seed * 1_000_003 + 500_000 + round
    renamings = draw_entity_renamings(drawn, grpo.renamed_share, policy, recipe.environment, seed)
    episodes = play_real(stage, policy, recipe, repeated, grpo.temperature, seed, renamings)
    made_by = made_here(recipe.seed, round, policy.sha256)
    tag = store_rows(episodes, made_by, recipe.retrieval, f"{stage}-{round}")
    return put_trajectories(episodes, table_tag=tag)
