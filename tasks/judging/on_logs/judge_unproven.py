"""Judge a policy that no real environment has seen.

in:  dreamt success of the candidate and of the starting policy on held-out logged tasks; measurements of the model
out: the verdict, which never passes, as an immutable gate.json; a person may promote in spite of its first objection
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from infra.context import objects
from models.measurement.intervals import Interval, paired_gain
from schemas.recipes.digests import digest_of
from schemas.recipes.judging import GateRecipe
from schemas.records import Reference
from schemas.runs import BASELINES, NOT_PROVEN
from tasks.running.versioned import versioned_task


@versioned_task
def judge_unproven(
    candidate: Reference,
    dreamt: dict[str, Any],
    start: Reference,
    start_dreamt: dict[str, Any],
    on_logs: dict[str, float],
    recipe: GateRecipe,
    champion: Reference | None = None,
) -> dict[str, Any]:
    """Return the verdict; its `report` is the reference that a promotion rests on.

    Args:
        candidate: Policy that would be promoted.
        dreamt: Dreamt evaluation of the candidate, from the task `dream_logged_tasks`.
        start: Policy that the candidate was trained from.
        start_dreamt: Dreamt evaluation of the starting policy on the same tasks.
        on_logs: Measurements of the experience model, from the task `measure_on_logs`.
        recipe: Thresholds.
        champion: Policy that would be replaced, if there is one.
    """
    mine, its = dreamt["dreamt_successes"], start_dreamt["dreamt_successes"]
    common = sorted(mine.keys() & its.keys())
    gain = paired_gain([mine[task] for task in common], [its[task] for task in common])
    verdict = {
        "candidate": candidate.sha256,
        "start": start.sha256,
        "champion": champion.sha256 if champion else "",
        "evaluated_tasks": digest_of(common),
        "thresholds": recipe.model_dump(mode="json"),
        "passed": False,
        "dreamt_gain": asdict(gain),
        "reasons": [NOT_PROVEN, *_objections(gain, on_logs, recipe)],
        "over_champion": None,
    }
    verdict["report"] = objects().put_json(verdict, "gate")
    return verdict


def _objections(gain: Interval, on_logs: Mapping[str, float], recipe: GateRecipe) -> Iterator[str]:
    """Yield what speaks against a policy even if a person accepts that nothing is proven."""
    if gain.low <= -recipe.margin and recipe.margin < 1:
        yield f"dreamt gain {gain.mean:+z.1%} may be as low as {gain.low:+z.1%}, which is not above {-recipe.margin:+z.1%}"
    for name, words in BASELINES.items():
        if on_logs[f"gain_over_{name}_low"] <= 0:
            yield (
                f"predicted next states are not shown to be better than {words}: word F1 {on_logs['next_state_f1']:.2f} beside "
                f"{on_logs[f'{name}_f1']:.2f}"
            )
    if on_logs["outcome_agreement"] < recipe.min_outcome_agreement:
        yield (
            f"only {on_logs['outcome_agreement']:.1%} of held-out logged episodes end in the dream as in the log, below "
            f"{recipe.min_outcome_agreement:.1%}"
        )
