"""Judge a policy of a finished run anew, against who is champion today."""

from typing import Any

from prefect import flow

from flows.at_work import at_work
from flows.lineage import Lineage
from flows.prove import prove, prove_fine_tuned
from infra.progress import Display
from infra.run_records import record_of, save_record
from schemas.errors import InputError
from schemas.plain import plain, restored
from schemas.recipe import Recipe
from schemas.runs import Record

GATES = {"dream": "gate", "sim_to_real": "real_gate"}
"""Where a run's record keeps the verdict on each policy that may become champion."""


def judge_run(record: Record, policy: str, display: Display) -> Record:
    """Evaluate a policy and the champion on a panel of their own; the run's record with the new verdict, which is kept.

    Args:
        record: Of the run.
        policy: `dream` or `sim_to_real`.
        display: Shows what happens.

    Raises:
        InputError: the run has no such policy.
    """
    run_id, recipe = record["run_id"], Recipe.model_validate(record["recipe"])
    require_policy(record, policy)
    with at_work(recipe, run_id, display):
        made = judgement.with_options(flow_run_name=f"judge {run_id}")(recipe, restored(record["lineage"]), policy)
    verdict = {GATES[policy]: plain(getattr(made, GATES[policy]))}
    judged = {**record_of(run_id), **verdict, "versions": record["versions"] | made.versions}
    save_record(judged)
    return judged


def require_policy(record: Record, policy: str) -> None:
    """Refuse a policy that a run does not have.

    Raises:
        InputError: it has none.
    """
    if policy not in record.get("lineage", {}):
        raise InputError(
            f"run {record['run_id']} has no policy {policy.replace('_', '-')} yet: run it further first, with `dreamgym run`"
        )


@flow(name="judgement", validate_parameters=False)
def judgement(recipe: Recipe, references: dict[str, Any], policy: str) -> Lineage:
    """Evaluate and judge what a run made."""
    made = Lineage.of_finished(references)
    if policy == "dream":
        prove(recipe, made, anew=True)
    else:
        prove_fine_tuned(recipe, made, anew=True)
    return made
