"""Judge a candidate against the starting policy, and against the champion whose place it would take.

in:  two or three evaluations on the same real tasks
out: the verdict as an immutable gate.json with the digests of all that it rests on
"""

from dataclasses import asdict
from typing import Any

from infra.doors import objects
from models.gate import GateOptions, judge, judge_succession
from schemas.digests import digest_of
from schemas.recipe import GateRecipe
from schemas.records import Reference
from tasks.versioned import versioned_task


@versioned_task
def judge_candidate(
    candidate: Reference,
    evaluation: dict[str, Any],
    start: Reference,
    start_evaluation: dict[str, Any],
    recipe: GateRecipe,
    champion: Reference | None = None,
    champion_evaluation: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The gate's verdict; its `report` is the reference that a promotion rests on.

    Args:
        candidate: The policy that would be promoted.
        evaluation: Its evaluation, from the task `evaluate`.
        start: The policy that it was trained from, which it must beat.
        start_evaluation: On the same tasks.
        recipe: Thresholds.
        champion: The policy that would be replaced, if there is another one.
        champion_evaluation: On the same tasks.
    """
    options = GateOptions(**recipe.model_dump(exclude={"needs_approval"}))
    successes, families = evaluation["successes"], evaluation["families"]
    verdict = judge(
        successes,
        start_evaluation["successes"],
        families,
        evaluation["outcome_agreement"],
        evaluation["dream_real_gap"],
        options,
    )
    succession = (
        judge_succession(successes, champion_evaluation["successes"], families, options)
        if champion_evaluation
        else None
    )
    gate = {
        "candidate": candidate.sha256,
        "start": start.sha256,
        "champion": champion.sha256 if champion else "",
        "evaluated_tasks": digest_of(sorted(successes)),
        "thresholds": recipe.model_dump(mode="json"),
        **asdict(verdict),
        "over_champion": asdict(succession) if succession else None,
    }
    gate["report"] = objects().put_json(gate, "gate")
    return gate
