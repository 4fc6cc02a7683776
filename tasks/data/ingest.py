"""Ingest real trajectories: of a mixture of behaviour policies, of a model as it is, or imported from files.

in:  the environment's train tasks, episodes that a model played on them, or files of logged transitions
out: trajectories by reference; rows in `transitions`, bad rows in `quarantine`
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from infra.context import replay_store, run_context
from infra.environments.by_name import open_environment
from infra.progress.progress import Report
from models.methods.behaviours import Behaviour
from models.methods.method import open_method
from schemas.errors import DataError
from schemas.recipes.data import IngestRecipe, RetrievalRecipe
from schemas.recipes.environments import LogsRecipe
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import AgentTask, Reference, Trajectory
from tasks.data.held_out_logs import with_splits
from tasks.data.provenance import made_here
from tasks.data.store_rows import store_logs
from tasks.logs.read_log import read_log
from tasks.running.artifacts import get_trajectories, put_trajectories
from tasks.running.versioned import versioned_task


@versioned_task
def ingest(
    environment: EnvironmentRecipe,
    recipe: IngestRecipe,
    retrieval: RetrievalRecipe,
    seed: int,
    log_files: dict[str, str],
    played: Reference | None = None,
) -> Reference:
    """Collect or import real trajectories of the train tasks, and store them.

    Args:
        environment: Environment of the tasks.
        recipe: Number of episodes and their behaviour, or the path to import from.
        retrieval: Section that names the encoder of the stored vectors.
        seed: Seed of the behaviours.
        log_files: Digests of the imported files by name, part of the cache key; none when collecting.
        played: Episodes of a model, if they are collected from it.
    """
    with run_context().display.stage("ingest") as report:
        if played:
            trajectories = get_trajectories(played)
        elif recipe.path:
            trajectories = _imported(environment, recipe)
        else:
            trajectories = _collected(environment, recipe, seed, report)
        num_episodes, success = len(trajectories), _success(trajectories)
        report(num_episodes, num_episodes, "episodes", f"{success:.0%} of them successes")
    run_context().display.time.failed("ingest", Counter(one.failure.value for one in trajectories if one.failure))
    tag = store_logs(trajectories, made_here(seed), retrieval)
    return put_trajectories(trajectories, table_tag=tag, success=success)


def _collected(environment: EnvironmentRecipe, recipe: IngestRecipe, seed: int, report: Report) -> list[Trajectory]:
    real = open_environment(environment)
    tasks = real.tasks("train", environment.num_train_tasks)
    return open_method(Behaviour, recipe.behaviour).collect(
        real,
        tasks,
        recipe.episodes_per_task,
        seed,
        environment.max_steps,
        lambda num_done, num_total: report(num_done, num_total, "episodes", ""),
    )


def _imported(environment: EnvironmentRecipe, recipe: IngestRecipe) -> list[Trajectory]:
    path = Path(recipe.path)
    real = open_environment(environment)
    log = read_log(
        path, real.task_error if recipe.require_known_tasks else lambda task: real.task_error(_as_if_generated(task))
    )
    replay_store().upsert("quarantine", log.quarantined)
    if log.bad_share > recipe.max_bad_share:
        reasons = ", ".join(f"{count} x {reason}" for reason, count in log.reasons.most_common(5))
        raise DataError(
            f"{path}: {log.bad_share:.0%} of {log.num_rows} rows cannot be used ({reasons}); "
            f"ingest.max_bad_share is {recipe.max_bad_share:.0%}. They are in the quarantine table with reasons"
        )
    for reason, count in log.reasons.most_common():
        run_context().display.say(f"quarantined {count} rows: {reason}")
    for what, count in (("came twice and count once", log.episodes.num_repeated), ("grew", log.episodes.num_grown)):
        if count:
            run_context().display.say(f"{path}: {count} episodes {what}")
    return with_splits(log.trajectories, environment) if isinstance(environment, LogsRecipe) else log.trajectories


def _as_if_generated(task: AgentTask) -> AgentTask:
    return replace(task, parent_id="log")


def _success(trajectories: list[Trajectory]) -> float:
    """Return the success rate of the episodes without a failure."""
    whole = [t for t in trajectories if not t.failure]
    return sum(t.success for t in whole) / max(1, len(whole))
