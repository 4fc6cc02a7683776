"""Play episodes in parts, side by side where there are workers: for real, and in the experience model."""

from collections.abc import Sequence
from itertools import pairwise

from schemas.recipes.recipe import PlayRecipe
from schemas.records import AgentTask, Reference, Trajectory
from tasks.playing.play import dream_environment, play, play_real
from tasks.running.artifacts import get_tasks, get_trajectories, put_tasks, put_trajectories
from tasks.running.device import use_threads
from tasks.running.workers import by_workers

_BETWEEN_PARTS = 10_000_019
"""Seed offset between two parts."""


def play_real_in_parts(
    stage: str,
    policy: Reference,
    recipe: PlayRecipe,
    tasks: Sequence[AgentTask],
    temperature: float,
    seed: int,
    num_parts: int,
) -> list[Trajectory]:
    """Play one real episode per task, in parts with seeds of their own; see play_real."""
    if num_parts == 1:
        return play_real(stage, policy, recipe, tasks, temperature, seed)
    parts = _stored(tasks, num_parts)
    calls = [(stage, policy, recipe, temperature, seed + i * _BETWEEN_PARTS, one) for i, one in enumerate(parts)]
    return get_trajectories(*by_workers(stage, real_part, calls, recipe.engine))


def real_part(
    stage: str, policy: Reference, recipe: PlayRecipe, temperature: float, seed: int, tasks: Reference
) -> Reference:
    """Play one real episode per task of a part, and store the episodes."""
    use_threads()
    return put_trajectories(play_real(stage, policy, recipe, get_tasks(tasks), temperature, seed))


def dream_in_parts(
    stage: str,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    tasks: Sequence[AgentTask],
    temperature: float,
    num_parts: int,
) -> list[Trajectory]:
    """Dream one episode per task, in parts with seeds of their own, from the states with which the tasks begin.

    Args:
        stage: Name of the stage.
        policy: Policy that acts.
        experience_model: Model that answers.
        experience: Trajectories that it may retrieve.
        recipe: Sections that decide how an episode goes, and the seed of the first part.
        tasks: Tasks with their first states.
        temperature: Sampling temperature of the policy.
        num_parts: Number of parts.
    """
    if num_parts == 1:
        environment = dream_environment(experience_model, experience, recipe, recipe.seed)
        return play(stage, policy, environment, "dream", tasks, recipe, temperature, recipe.seed)
    dreamt_by = (stage, policy, experience_model, experience, recipe, temperature)
    parts = _stored(tasks, num_parts)
    calls = [(*dreamt_by, recipe.seed + i * _BETWEEN_PARTS, one) for i, one in enumerate(parts)]
    return get_trajectories(*by_workers(stage, dreamt_part, calls, recipe.engine))


def dreamt_part(
    stage: str,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    temperature: float,
    seed: int,
    tasks: Reference,
) -> Reference:
    """Dream one episode per task of a part, and store the episodes."""
    use_threads()
    environment = dream_environment(experience_model, experience, recipe, seed)
    return put_trajectories(play(stage, policy, environment, "dream", get_tasks(tasks), recipe, temperature, seed))


def _stored(tasks: Sequence[AgentTask], num_parts: int) -> list[Reference]:
    """Store the tasks in parts of equal size, neighbours together; no part is empty."""
    number = min(num_parts, len(tasks))
    edges = [len(tasks) * part // number for part in range(number + 1)]
    return [put_tasks(tasks[first:end]) for first, end in pairwise(edges)]
