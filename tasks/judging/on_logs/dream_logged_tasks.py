"""Dream held-out logged tasks with a policy, where no environment is there to play them.

in:  a policy, an experience model, held-out logged episodes
out: dreamt success by task with its interval; sample episodes
"""

from typing import Any

from models.measurement.intervals import success_by_task, success_rate
from schemas.errors import DataError
from schemas.recipes.judging import EvaluationRecipe
from schemas.recipes.recipe import PlayRecipe
from schemas.records import Reference
from tasks.data.pool_tasks import tasks_in
from tasks.playing.play import dream_environment, play
from tasks.running.artifacts import put_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task

_NUM_SAMPLES = 24


@versioned_task
def dream_logged_tasks(
    name: str,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    held_out: Reference,
    recipe: PlayRecipe,
    measured: EvaluationRecipe,
    num_tasks: int,
) -> dict[str, Any]:
    """Return dreamt success of a policy on the tasks of held-out episodes, each from its logged first state.

    Args:
        name: Name of the stage, e.g. `calibrate` or `evaluate start`.
        policy: Policy to evaluate.
        experience_model: Experience model that the policy dreams in.
        experience: Trajectories that the experience model may retrieve.
        held_out: Logged episodes of the tasks.
        recipe: Settings of the engine and the episodes.
        measured: Episodes per task and sampling temperature.
        num_tasks: Maximum number of tasks.

    Raises:
        DataError: every dream broke.
    """
    use_threads()
    tasks = tasks_in([held_out])[:num_tasks]
    repeated = [task for task in tasks for _ in range(measured.episodes_per_task)]
    imagined = dream_environment(experience_model, experience, recipe, recipe.seed)
    dreamt = play(f"{name} dream", policy, imagined, "dream", repeated, recipe, measured.temperature, recipe.seed)
    whole = [one for one in dreamt if not one.failure]
    if not whole:
        raise DataError(
            f"all {len(dreamt)} dreams of held-out tasks broke ({dreamt[0].failure}): give prompts and predictions more tokens "
            "(experience.max_new_tokens, policy.max_episode_tokens), or fit the experience model longer"
        )
    successes = success_by_task(whole)
    interval = success_rate(list(successes.values()))
    return {
        "dream_success": interval.mean,
        "dream_success_low": interval.low,
        "dream_success_high": interval.high,
        "num_tasks": len(successes),
        "num_broken": len(dreamt) - len(whole),
        "dreamt_successes": successes,
        "samples": put_trajectories(dreamt[:: measured.episodes_per_task][:_NUM_SAMPLES]),
    }
