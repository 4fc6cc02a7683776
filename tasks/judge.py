"""Judge a candidate against the starting policy, and against the champion whose place it would take.

in:  two or three evaluations on the same real tasks
out: the verdict as an immutable gate.json with the digests of all that it rests on
"""

from dataclasses import asdict, fields
from typing import Any

from infra.doors import objects
from models.gate import Dreams, judge, judge_succession
from schemas.recipe import GateRecipe, digest_of
from schemas.records import Reference
from tasks.versioned import versioned_task


@versioned_task(version=2)
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
    successes, families = evaluation["successes"], evaluation["families"]
    dreams = Dreams(**{one.name: evaluation[one.name] for one in fields(Dreams)})
    verdict = judge(successes, start_evaluation["successes"], families, dreams, recipe)
    succession = (
        judge_succession(successes, champion_evaluation["successes"], families, recipe) if champion_evaluation else None
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
