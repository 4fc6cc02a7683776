"""Play episodes in shards, side by side where there are workers: for real, and in the experience model."""

from collections.abc import Sequence

from schemas.recipes.recipe import PlayRecipe
from schemas.records import AgentTask, Reference, Trajectory
from tasks.playing.groups import edges_of_shards, seed_of_shard
from tasks.playing.play import dream_environment, play, play_real
from tasks.running.artifacts import get_tasks, get_trajectories, put_tasks, put_trajectories
from tasks.running.device import use_threads
from tasks.running.workers import by_workers


def play_real_in_shards(
    stage: str,
    policy: Reference,
    recipe: PlayRecipe,
    tasks: Sequence[AgentTask],
    temperature: float,
    seed: int,
    num_shards: int,
) -> list[Trajectory]:
    """Play one real episode per task, in shards with seeds of their own; see play_real."""
    if num_shards == 1:
        return play_real(stage, policy, recipe, tasks, temperature, seed)
    shards = _stored(tasks, num_shards)
    calls = [(stage, policy, recipe, temperature, seed_of_shard(seed, i), one) for i, one in enumerate(shards)]
    return get_trajectories(*by_workers(stage, real_shard, calls, recipe.engine))


def real_shard(
    stage: str, policy: Reference, recipe: PlayRecipe, temperature: float, seed: int, tasks: Reference
) -> Reference:
    """Play one real episode per task of a shard, and store the episodes."""
    use_threads()
    return put_trajectories(play_real(stage, policy, recipe, get_tasks(tasks), temperature, seed))


def dream_in_shards(
    stage: str,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    tasks: Sequence[AgentTask],
    temperature: float,
    num_shards: int,
) -> list[Trajectory]:
    """Dream one episode per task, in shards with seeds of their own, from the states with which the tasks begin.

    Args:
        stage: Name of the stage.
        policy: Policy that acts.
        experience_model: Model that answers.
        experience: Trajectories that it may retrieve.
        recipe: Sections that decide how an episode goes, and the seed of the first shard.
        tasks: Tasks with their first states.
        temperature: Sampling temperature of the policy.
        num_shards: Number of shards.
    """
    if num_shards == 1:
        environment = dream_environment(experience_model, experience, recipe, recipe.seed)
        return play(stage, policy, environment, "dream", tasks, recipe, temperature, recipe.seed)
    dreamt_by = (stage, policy, experience_model, experience, recipe, temperature)
    shards = _stored(tasks, num_shards)
    calls = [(*dreamt_by, seed_of_shard(recipe.seed, i), one) for i, one in enumerate(shards)]
    return get_trajectories(*by_workers(stage, dreamt_shard, calls, recipe.engine))


def dreamt_shard(
    stage: str,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    temperature: float,
    seed: int,
    tasks: Reference,
) -> Reference:
    """Dream one episode per task of a shard, and store the episodes."""
    use_threads()
    environment = dream_environment(experience_model, experience, recipe, seed)
    return put_trajectories(play(stage, policy, environment, "dream", get_tasks(tasks), recipe, temperature, seed))


def _stored(tasks: Sequence[AgentTask], num_shards: int) -> list[Reference]:
    """Store the tasks in shards, none of which is empty."""
    edges = edges_of_shards(len(tasks), min(num_shards, len(tasks)))
    return [put_tasks(tasks[first:end]) for first, end in edges]
