"""Evaluate a policy in the REAL environment on pinned tasks, and its dreams beside it, called dreams.

in:  a policy, an experience model and what it may retrieve, a split
out: success by task, interval, calibration; rows in `evaluations`; sample trajectories
"""

from collections import Counter, defaultdict
from statistics import fmean
from typing import Any

from infra.doors import cycle, replay_store
from infra.environments.by_name import open_environment
from models.calibration import Calibration, calibrate, failed, replay
from models.intervals import success_rate
from schemas.errors import EnvironmentLost
from schemas.recipe import EvaluationRecipe, PlayRecipe
from schemas.records import Failure, Reference, Trajectory
from tasks.device import use_threads
from tasks.keep import put_trajectories
from tasks.play import dream_environment, play, play_real
from tasks.rows import Provenance
from tasks.versioned import versioned_task

_NUM_SAMPLES = 24


@versioned_task
def evaluate(
    name: str,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    measured: EvaluationRecipe,
    split: str,
    num_tasks: int,
    round: int,
) -> dict[str, Any]:
    """Play every task for real and as often in the dream, and replay the dreams for real.

    Args:
        name: Of the stage, such as `calibrate` or `evaluate start`.
        policy: Whom.
        experience_model: Dreams beside it.
        experience: What the experience model may retrieve.
        recipe: How episodes go.
        measured: How often a task is played, and at which temperature.
        split: valid while training, test for the report.
        num_tasks: The first so many of the split.
        round: After which round of training; 0 where there is one evaluation only.

    Raises:
        EnvironmentLost: some tasks could not be played to an end.
    """
    use_threads()
    environment = open_environment(recipe.environment)
    with cycle().display.stage("make games"):
        held_out = environment.tasks(split, num_tasks)
    repeated = [task for task in held_out for _ in range(measured.episodes_per_task)]
    real = play_real(name, policy, recipe, repeated, measured.temperature, recipe.seed)
    _require_outcomes(real)
    imagined = dream_environment(experience_model, experience, recipe, recipe.seed)
    tasks = [one.task_as_it_began for one in real]
    dreamt = play(f"{name} dream", policy, imagined, "dream", tasks, recipe, measured.temperature, recipe.seed)
    with cycle().display.stage("replays"):
        replays = replay(dreamt, environment)
    cycle().display.time.failed("replays", Counter(Failure.ENVIRONMENT.value for one in replays if failed(one)))
    calibration = calibrate(dreamt, replays, real)
    made_by = Provenance(cycle().recipe_digest, recipe.seed, round, policy.sha256, experience_model.sha256)
    replay_store().upsert("evaluations", _rows(real, dreamt, made_by))
    first = slice(0, _NUM_SAMPLES * measured.episodes_per_task, measured.episodes_per_task)
    samples = put_trajectories([*real[first], *dreamt[first]])
    return {**_summary(real, calibration), "samples": samples}


def _require_outcomes(real: list[Trajectory]) -> None:
    if failed := [episode for episode in real if episode.failure is Failure.ENVIRONMENT]:
        first = failed[0]
        raise EnvironmentLost(
            f"the real environment failed in {len(failed)} of {len(real)} episodes, and again when they were played anew; "
            f"{first.task.task_id}: {first.turns[-1].step.reasoning}. Mend it and run again: what is finished stays"
        )


def _summary(real: list[Trajectory], calibration: Calibration) -> dict[str, Any]:
    successes = _success_by_task(real)
    interval = success_rate(list(successes.values()))
    return {
        **calibration.metrics(),
        "interval_low": interval.low,
        "interval_high": interval.high,
        "num_steps": float(sum(len(t.turns) for t in real)),
        "successes": successes,
        "families": {t.task.task_id: t.task.family for t in real},
    }


def _success_by_task(real: list[Trajectory]) -> dict[str, float]:
    """Share of each task's episodes that succeeded."""
    episodes: dict[str, list[bool]] = defaultdict(list)
    for one in real:
        episodes[one.task.task_id].append(one.success)
    return {task_id: fmean(outcomes) for task_id, outcomes in episodes.items()}


def _rows(real: list[Trajectory], dreamt: list[Trajectory], made_by: Provenance) -> list[dict[str, Any]]:
    return [
        {
            "row_id": f"{cycle().run_id}/{made_by.round}/{made_by.policy[:16]}/{one.task.task_id}/{number}",
            "task_id": one.task.task_id,
            "family": one.task.family,
            "real_success": one.success,
            "dream_success": None if other.failure else other.success,
            "num_steps": len(one.turns),
            **made_by.columns(),
        }
        for number, (one, other) in enumerate(zip(real, dreamt, strict=True))
    ]
