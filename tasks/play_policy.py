"""Log the starting policy's own real episodes: its mistakes are what the dream must not grant.

in:  train tasks, the starting policy
out: annotated-later real trajectories; rows in `transitions`
"""

from infra.doors import cycle
from infra.environments.catalogue import open_environment
from schemas.recipe import Recipe
from schemas.records import Reference
from tasks.evaluate import with_first_states
from tasks.keep import get_model, put_trajectories, use_threads
from tasks.play import play_real
from tasks.rows import Provenance
from tasks.store_rows import store_rows
from tasks.versioned import versioned_task


@versioned_task(version=1)
def play_policy(policy: Reference, recipe: Recipe) -> Reference:
    """Real episodes of the starting policy on train tasks, sampled as GRPO samples."""
    use_threads()
    environment = open_environment(recipe.environment)
    tasks = environment.tasks("train", recipe.environment.num_train_tasks)
    wanted = [tasks[i % len(tasks)] for i in range(recipe.experience.num_refit_episodes)]
    episodes = play_real(
        "own mistakes",
        get_model(policy),
        recipe,
        with_first_states(environment, wanted),
        recipe.grpo.temperature,
        recipe.seed,
    )
    made_by = Provenance(cycle().recipe_digest, recipe.seed, 0, policy.sha256)
    store_rows(episodes, made_by, recipe.retrieval)
    return put_trajectories(episodes)
