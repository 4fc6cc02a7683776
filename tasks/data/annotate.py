"""Annotate each transition with a reasoning trace, in hindsight (paper, section 4.2 and prompt C.1).

in:  trajectories without reasoning
out: the same with reasoning; their rows in `transitions` are replaced, which is a new table version
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from infra.context import replay_store, run_context
from infra.environments.by_name import annotator_of_facts
from models.experience.teacher import TeacherAnnotator
from schemas.plain import plain
from schemas.ports import Annotator
from schemas.recipes.data import AnnotateRecipe, RetrievalRecipe
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import Reference, Trajectory
from tasks.data.provenance import made_here
from tasks.data.store_rows import store_rows
from tasks.logs.read_log import quarantined
from tasks.logs.sources.records import Record
from tasks.running.artifacts import get_trajectories, put_trajectories
from tasks.running.predictors import open_endpoint
from tasks.running.versioned import versioned_task


@versioned_task
def annotate(
    trajectories: Reference,
    recipe: AnnotateRecipe,
    environment: EnvironmentRecipe,
    retrieval: RetrievalRecipe,
    seed: int,
    policy: str = "",
    store: bool = True,
) -> Reference:
    """Return the trajectories with a reasoning trace on every turn, without those that the annotator could not explain.

    These go to the quarantine table with the reason; nothing is learnt from them.

    Args:
        trajectories: Real trajectories.
        recipe: Section that selects the annotator.
        environment: Environment whose rules are the offline annotator.
        retrieval: Section that names the encoder of the stored vectors.
        seed: Seed of the recipe, recorded in the rows.
        policy: Digest of the policy that played, if it is a stored one.
        store: Write the rows; False for trajectories recalled from the store, which has them.
    """
    episodes = get_trajectories(trajectories)
    annotator = _annotator(recipe, environment)
    with run_context().display.stage("annotate") as report:
        traces = annotator.annotate(episodes)
        report(len(traces), len(traces), "episodes", "")
    pairs = [*zip(episodes, traces, strict=True)]
    _quarantine([episode for episode, own in pairs if own is None])
    explained = [with_reasoning(episode, own) for episode, own in pairs if own is not None]
    made_by = made_here(seed, policy=policy)
    if not store:
        return put_trajectories(explained)
    tag = store_rows(explained, made_by, retrieval, f"annotated-{trajectories.sha256[:8]}")
    return put_trajectories(explained, table_tag=tag)


def _annotator(recipe: AnnotateRecipe, environment: EnvironmentRecipe) -> Annotator:
    if recipe.annotator == "facts":
        return annotator_of_facts(environment)
    return TeacherAnnotator(open_endpoint(recipe.teacher_model))


def _quarantine(unexplained: Sequence[Trajectory]) -> None:
    """Store trajectories without reasoning in the quarantine table, and say how many they are."""
    if not unexplained:
        return
    reason = "the teacher did not explain each of its steps in three attempts"
    records = [
        Record(f"{one.source or one.origin} {one.task.task_id}", {}, reason, json.dumps(plain(one), ensure_ascii=False))
        for one in unexplained
    ]
    replay_store().upsert("quarantine", [quarantined(one) for one in records])
    run_context().display.say(f"quarantined {len(unexplained)} trajectories: {reason}")


def with_reasoning(episode: Trajectory, traces: list[str]) -> Trajectory:
    """Return the episode with its reasoning traces filled in."""
    turns = [
        replace(turn, step=replace(turn.step, reasoning=trace))
        for turn, trace in zip(episode.turns, traces, strict=True)
    ]
    return replace(episode, turns=turns)
