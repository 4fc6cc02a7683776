"""Judge a policy of a finished run again, against today's champion."""

from typing import Any

from prefect import flow

from flows.loop.evaluate_and_judge import evaluate_and_judge, evaluate_and_judge_fine_tuned
from flows.loop.lineage import Lineage
from flows.run_session import run_session
from infra.progress.progress import Display
from infra.storage.run_records import record_of, save_record
from schemas.plain import plain, restored
from schemas.policies import GATES, PolicyName
from schemas.recipes.recipe import Recipe, stored_recipe
from schemas.runs import Record
from tasks.running.pins import with_encoder_pinned


def judge_run(record: Record, policy: PolicyName, display: Display) -> Record:
    """Evaluate a policy and today's champion again; store and return the run's record with the new verdict.

    Args:
        record: Record of a run that has this policy.
        policy: `dream` or `sim-to-real`.
        display: Shows progress.
    """
    run_id, recipe = record["run_id"], stored_recipe(record["recipe"])
    with run_session(recipe, run_id, display, reopen=False):
        flow = judgement.with_options(flow_run_name=f"judge {run_id}")
        made = flow(recipe, restored(record["lineage"]), policy)
    verdict = {GATES[policy]: plain(getattr(made, GATES[policy]))}
    judged = {**record_of(run_id), **verdict, "versions": record["versions"] | made.versions}
    save_record(judged)
    return judged


@flow(name="judgement", validate_parameters=False)
def judgement(recipe: Recipe, references: dict[str, Any], policy: PolicyName) -> Lineage:
    """Evaluate and judge a policy of a finished run again."""
    recipe, made = with_encoder_pinned(recipe), Lineage.of_finished(references)
    judge_again = evaluate_and_judge if policy is PolicyName.DREAM else evaluate_and_judge_fine_tuned
    judge_again(recipe, made, anew=True)
    return made
