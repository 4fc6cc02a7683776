"""Log real episodes of the starting policy: the experience model must not let its mistakes succeed.

in:  train tasks, the starting policy
out: real trajectories, which `annotate` explains and stores
"""

from infra.environments.by_name import open_environment
from schemas.recipes.recipe import RealPlayRecipe
from schemas.records import Reference
from tasks.playing.entity_renaming import draw_entity_renamings
from tasks.playing.play import play_real
from tasks.running.artifacts import put_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task


@versioned_task
def play_policy(
    policy: Reference,
    recipe: RealPlayRecipe,
    num_episodes: int,
    temperatures: tuple[float, ...],
    entity_renaming: float,
) -> Reference:
    """Play real episodes of the starting policy on train tasks.

    Args:
        policy: Policy that plays.
        recipe: Settings of the environment, the engine and the episodes.
        num_episodes: Total number of episodes, divided equally among the temperatures.
        temperatures: Temperatures at which the policy is sampled.
        entity_renaming: Share of tasks that the policy is shown under other names, as in its training.
    """
    use_threads()
    tasks = open_environment(recipe.environment).tasks("train", recipe.environment.num_train_tasks)
    wanted = [tasks[i % len(tasks)] for i in range(num_episodes)]
    renamings = draw_entity_renamings(tasks, entity_renaming, policy, recipe.environment, recipe.seed)
    episodes = [
        episode
        for i, temperature in enumerate(temperatures)
        for episode in play_real(
            "on-policy episodes",
            policy,
            recipe,
            wanted[i :: len(temperatures)],
            temperature,
            recipe.seed + i,
            renamings,
        )
    ]
    return put_trajectories(episodes)
