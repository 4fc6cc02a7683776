"""Dream: groups of episodes of the round's tasks, inside the experience model (paper, section 4.1).

in:  tasks, policy, experience model, what it may retrieve
out: dreamt trajectories, group by group; their rows in `transitions` with origin dream
"""

from infra.doors import cycle
from schemas.recipe import GrpoRecipe, PlayRecipe
from schemas.records import Reference
from tasks.keep import get_tasks, put_trajectories, use_threads
from tasks.play import dream_environment, play
from tasks.rows import Provenance
from tasks.store_rows import store_rows
from tasks.versioned import versioned_task


@versioned_task(version=1)
def dream(
    tasks: Reference,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    grpo: GrpoRecipe,
    round: int,
    max_staleness: int = 0,
) -> Reference:
    """Groups of dreamt episodes, group_size of each task next to each other.

    If they may be stale, the policy is trained meanwhile, and episodes that are under way go on with what it has become.
    """
    use_threads()
    seed = recipe.seed * 1_000_003 + round
    environment = dream_environment(experience_model, experience, recipe, seed)
    repeated = [task for task in get_tasks(tasks) for _ in range(grpo.group_size)]
    episodes = play(
        "dream", policy, environment, "dream", repeated, recipe, grpo.temperature, seed, follow=max_staleness > 0
    )
    made_by = Provenance(cycle().recipe_digest, recipe.seed, round, policy.sha256, experience_model.sha256)
    tag = store_rows(episodes, made_by, recipe.retrieval, f"dream-{round}")
    success = sum(t.success for t in episodes) / len(episodes)
    broken = sum(t.failure is not None for t in episodes)
    return put_trajectories(episodes, dream_success=success, num_broken=broken, table_tag=tag)
