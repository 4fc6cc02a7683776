"""Judge the policy of a finished cycle anew, against who is champion today."""

from typing import Any

from prefect import flow

from flows.at_work import at_work
from flows.cycle import Lineage, prove
from infra.cycles import save_summary
from infra.progress import Display
from schemas.errors import InputError
from schemas.plain import plain, restored
from schemas.recipe import Recipe


def judge_run(summary: dict[str, Any], display: Display) -> dict[str, Any]:
    """Evaluate candidate and champion on the cycle's pinned tasks; the summary with the new verdict, which is kept.

    Raises:
        InputError: the cycle was stopped before it had a policy.
    """
    cycle_id = summary["cycle_id"]
    if "dream" not in summary["lineage"]:
        raise InputError(f"cycle {cycle_id} has no policy yet: dreamgym run it to the end first")
    recipe, references = Recipe.model_validate(summary["recipe"]), restored(summary["lineage"])
    with at_work(recipe, cycle_id, display, reopen=False):
        made = judgement.with_options(flow_run_name=f"judge {cycle_id}")(recipe, references)
    judged = summary | {"gate": plain(made.gate), "versions": summary["versions"] | made.versions}
    save_summary(judged)
    return judged


@flow(name="judgement", validate_parameters=False)
def judgement(recipe: Recipe, references: dict[str, Any]) -> Lineage:
    """Evaluate and judge what a cycle made; what was evaluated before with the same code is taken over."""
    made = Lineage(references=references)
    prove(recipe, made)
    return made
