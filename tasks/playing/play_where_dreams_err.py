"""Play real episodes of train tasks where the policy's dreams err most, to refit the experience model on them.

in:  the last dreamt groups, the present policy
out: real trajectories, which `annotate` explains and stores
"""

import random
from statistics import fmean

from infra.context import run_context
from infra.environments.by_name import open_environment
from models.measurement.calibration import failed, replay
from models.rollout.refit_sampling import sampling_shares, transition_errors
from schemas.recipes.recipe import RealPlayRecipe
from schemas.records import Reference, Trajectory
from tasks.playing.groups import seed_of_round
from tasks.playing.play import play_real
from tasks.running.artifacts import get_trajectories, put_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task

_BESIDE_TRAINING = 700_000
"""Seed offset between training and refit episodes of a round."""


@versioned_task
def play_where_dreams_err(
    dreamt: list[Reference],
    policy: Reference,
    recipe: RealPlayRecipe,
    num_episodes: int,
    temperature: float,
    round: int,
) -> Reference:
    """Play real episodes of the present policy, and note the number of real steps, those of the replays included.

    Args:
        dreamt: Groups of the last round; one dream of each train task is replayed to measure its error.
        policy: Policy that plays.
        recipe: Settings of the environment, the engine and the episodes.
        num_episodes: Total number of episodes.
        temperature: Temperature at which the policy is sampled.
        round: Training round that came before.
    """
    use_threads()
    environment = open_environment(recipe.environment)
    dreams = _one_of_each_task(get_trajectories(*dreamt))
    with run_context().display.stage("replays"):
        replays = replay(dreams, environment)
    errors = [
        0.0 if failed(steps) else fmean(transition_errors(dream, steps) or [0.0])
        for dream, steps in zip(dreams, replays, strict=True)
    ]
    rng = random.Random(f"{recipe.seed}/refit/{round}")
    tasks, shares = [dream.task for dream in dreams], sampling_shares(errors)
    if not dreams:  # every dream failed or is of a generated task
        tasks, shares = environment.tasks("train", recipe.environment.num_train_tasks), None
    drawn = rng.choices(tasks, weights=shares, k=num_episodes)
    seed = seed_of_round(recipe.seed, round) + _BESIDE_TRAINING
    episodes = play_real("refit", policy, recipe, drawn, temperature, seed)
    num_steps = sum(len(one.turns) for one in episodes) + sum(map(len, replays))
    return put_trajectories(episodes, num_real_steps=num_steps)


def _one_of_each_task(episodes: list[Trajectory]) -> list[Trajectory]:
    """Return one complete dream of each task that the real environment knows."""
    whole = {one.task.task_id: one for one in episodes if not one.failure and not one.task.generated}
    return list(whole.values())
