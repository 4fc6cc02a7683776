"""Evaluate a policy in the REAL environment on held-out tasks, and in dreams, which are reported as dreams.

in:  a policy, an experience model, the trajectories that it may retrieve, a split
out: success by task, confidence interval, calibration; rows in `evaluations`; sample trajectories, some with replays
"""

from collections import Counter
from itertools import zip_longest
from typing import Any

from infra.context import replay_store, run_context
from infra.environments.by_name import open_environment
from models.measurement.calibration import Calibration, calibrate, failed, replay
from models.measurement.intervals import success_by_task, success_rate
from schemas.errors import EnvironmentUnavailable
from schemas.recipes.judging import EvaluationRecipe
from schemas.recipes.recipe import PlayRecipe
from schemas.records import Failure, Reference, Trajectory
from tasks.data.provenance import made_here
from tasks.data.rows import Provenance
from tasks.judging.replayed_samples import replayed_samples
from tasks.playing.play_shards import dream_in_shards, play_real_in_shards
from tasks.running.artifacts import put_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task

_NUM_SAMPLES = 24
_BETWEEN_PANELS = 1_000_003
"""Seed offset between two panels of test tasks, so that a task played again gives another episode."""


@versioned_task
def evaluate(
    name: str,
    policy: Reference,
    experience_model: Reference | None,
    experience: list[Reference],
    recipe: PlayRecipe,
    measured: EvaluationRecipe,
    split: str,
    num_tasks: int,
    round: int,
    first_task: int = 0,
) -> dict[str, Any]:
    """Play the tasks in the real environment, dream the first of them as often, and replay the dreams for real.

    Args:
        name: Name of the stage, e.g. `calibrate` or `evaluate start`.
        policy: Policy to evaluate.
        experience_model: Experience model that the policy dreams in; None: nothing is dreamt.
        experience: Trajectories that the experience model may retrieve.
        recipe: Settings of the environment, the engine and the episodes.
        measured: Episodes per task, sampling temperature, numbers of dreamt tasks and of parts, bound on failed episodes.
        split: valid during training, test for the report.
        num_tasks: Number of tasks of the split.
        round: Training round that came before; on test tasks, the number of their panel.
        first_task: Number of the first task.

    Raises:
        EnvironmentUnavailable: more episodes have no outcome than the recipe allows.
    """
    use_threads()
    environment = open_environment(recipe.environment)
    with run_context().display.timed("make games"):
        held_out = environment.tasks(split, num_tasks, first_task)
    repeated = [task for task in held_out for _ in range(measured.episodes_per_task)]
    seed = recipe.seed + (round * _BETWEEN_PANELS if split == "test" else 0)
    played = play_real_in_shards(name, policy, recipe, repeated, measured.temperature, seed, measured.num_shards)
    real = _with_outcome(played, measured.max_failed_share)
    dreamt_tasks = {task.task_id for task in held_out[: measured.max_dreamt_tasks]}
    awake = [one for one in real if one.task.task_id in dreamt_tasks]
    dreamt = _dreamt(name, policy, experience_model, experience, recipe, measured, awake)
    with run_context().display.stage("replays"):
        replays = replay(dreamt, environment)
    run_context().display.time.failed("replays", Counter(Failure.ENVIRONMENT.value for one in replays if failed(one)))
    calibration = calibrate(dreamt, replays, awake) if dreamt else None
    dreamt_in = experience_model.sha256 if experience_model else ""
    made_by = made_here(recipe.seed, round, policy.sha256, dreamt_in)
    replay_store().upsert("evaluations", _rows(real, dreamt, made_by))
    first = slice(0, _NUM_SAMPLES * measured.episodes_per_task, measured.episodes_per_task)
    samples = {
        "samples": put_trajectories([*real[first], *dreamt[first]]),
        "replayed_samples": put_trajectories(replayed_samples(dreamt, replays)),
    }
    return {**_summary(real, calibration), "num_failed": len(played) - len(real), **samples}


def _dreamt(
    name: str,
    policy: Reference,
    experience_model: Reference | None,
    experience: list[Reference],
    recipe: PlayRecipe,
    measured: EvaluationRecipe,
    awake: list[Trajectory],
) -> list[Trajectory]:
    """Return one dream for each of the given real episodes, from the state in which it began."""
    if experience_model is None or not awake:
        return []
    tasks, temperature = [one.task_as_it_began for one in awake], measured.temperature
    return dream_in_shards(
        f"{name} dream", policy, experience_model, experience, recipe, tasks, temperature, measured.num_shards
    )


def _with_outcome(played: list[Trajectory], max_failed_share: float) -> list[Trajectory]:
    """Return the episodes in which the environment did not fail.

    The others have no outcome: they are left out and do not count as losses.

    Raises:
        EnvironmentUnavailable: too many episodes failed.
    """
    failed = [episode for episode in played if episode.failure is Failure.ENVIRONMENT]
    if not failed:
        return played
    first = failed[0]
    outage = (
        f"the real environment failed in {len(failed)} of {len(played)} episodes, and again when they were repeated; "
        f"{first.task.task_id}: {first.turns[-1].step.reasoning}"
    )
    if len(failed) > max_failed_share * len(played) or len(failed) == len(played):
        raise EnvironmentUnavailable(
            f"{outage}. evaluation.max_failed_share is {max_failed_share:.1%}. Fix the environment and run again; finished steps are not repeated"
        )
    run_context().display.say(f"{outage}. They are left out: no more than {max_failed_share:.1%} of the episodes")
    return [episode for episode in played if episode.failure is not Failure.ENVIRONMENT]


def _summary(real: list[Trajectory], calibration: Calibration | None) -> dict[str, Any]:
    successes = success_by_task(real)
    interval = success_rate(list(successes.values()))
    return {
        **(calibration.metrics() if calibration else {}),
        "real_success": sum(one.success for one in real) / len(real),
        "interval_low": interval.low,
        "interval_high": interval.high,
        "num_steps": float(sum(len(t.turns) for t in real)),
        "successes": successes,
        "families": {t.task.task_id: t.task.family for t in real},
    }


def _rows(real: list[Trajectory], dreamt: list[Trajectory], made_by: Provenance) -> list[dict[str, Any]]:
    return [
        {
            "row_id": f"{run_context().run_id}/{made_by.round}/{made_by.policy[:16]}/{one.task.task_id}/{number}",
            "task_id": one.task.task_id,
            "family": one.task.family,
            "real_success": one.success,
            "dream_success": other.success if other and not other.failure else None,
            "num_steps": len(one.turns),
            **made_by.columns(),
        }
        for number, (one, other) in enumerate(zip_longest(real, dreamt))
    ]
