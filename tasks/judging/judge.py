"""Judge a candidate against the starting policy, and against the champion that it would replace.

in:  two or three evaluations on the same real tasks
out: the verdict as an immutable gate.json with the digests of everything it rests on
"""

from dataclasses import asdict, fields
from typing import Any

from infra.context import objects
from models.measurement.gate import Dreams, judge, judge_succession
from schemas.recipes.digests import digest_of
from schemas.recipes.judging import GateRecipe
from schemas.records import Reference
from tasks.running.versioned import versioned_task


@versioned_task
def judge_candidate(
    candidate: Reference,
    evaluation: dict[str, Any],
    start: Reference,
    start_evaluation: dict[str, Any],
    recipe: GateRecipe,
    champion: Reference | None = None,
    champion_evaluation: dict[str, Any] | None = None,
    panel: dict[str, int | bool] | None = None,
) -> dict[str, Any]:
    """Return the gate's verdict; its `report` is the reference that a promotion rests on.

    Args:
        candidate: Policy that would be promoted.
        evaluation: Evaluation of the candidate, from the task `evaluate`.
        start: Policy that the candidate was trained from and must beat.
        start_evaluation: Evaluation of the starting policy on the same tasks.
        recipe: Thresholds.
        champion: Policy that would be replaced, if there is one.
        champion_evaluation: Evaluation of the champion on the same tasks.
        panel: Number of the panel of test tasks, and whether they are fresh or pinned.
    """
    families = evaluation["families"]
    mine, its = of_common_tasks(evaluation, start_evaluation)
    dreams = Dreams(**{one.name: evaluation[one.name] for one in fields(Dreams)})
    verdict = judge(mine, its, families, dreams, recipe)
    succession = None
    if champion_evaluation:
        succession = judge_succession(*of_common_tasks(evaluation, champion_evaluation), families, recipe)
    gate = {
        "candidate": candidate.sha256,
        "start": start.sha256,
        "champion": champion.sha256 if champion else "",
        "panel": panel,
        "judged_on": judged_on(panel),
        "evaluated_tasks": digest_of(sorted(evaluation["successes"])),
        "thresholds": recipe.model_dump(mode="json"),
        **asdict(verdict),
        "over_champion": asdict(succession) if succession else None,
    }
    gate["report"] = objects().put_json(gate, "gate")
    return gate


def judged_on(panel: dict[str, int | bool] | None) -> str:
    """Describe in words the test tasks that a judgement rests on."""
    if panel is None or panel["pinned"]:
        return "the pinned test tasks"
    if panel["fresh"]:
        return f"test tasks that no judgement used before (panel {panel['number']})"
    return f"all of the environment's test tasks, which were used to judge {panel['number']} times before"


def of_common_tasks(one: dict[str, Any], other: dict[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Return success by task of two evaluations, for the tasks in which both have an outcome.

    An environment that failed is no policy's loss.
    """
    mine, its = one["successes"], other["successes"]
    common = sorted(mine.keys() & its.keys())
    return {task: mine[task] for task in common}, {task: its[task] for task in common}
