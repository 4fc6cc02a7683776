"""Flows of the deployments: started by a schedule, an event, or by hand from the Prefect page.

Their parameters are plain, so that Prefect can draw a form. A flow run whose recipe has no reason to run completes
without an entry.
"""

from prefect import flow
from prefect.runtime import flow_run

from flows.flow_run import present_flow_run, rename_flow_run
from flows.promotion.approval import ask, needs_approval, was_suspended
from flows.promotion.judge_run import judge_run
from flows.promotion.promote_run import best_policy, require_candidate
from flows.running.run_recipe import fine_tune_run, run_recipe
from flows.runs.find_run import find_run
from flows.services.maintenance import in_words, tidy_up
from flows.stage import Stage
from infra.orchestration.announcements import POLICY_PROMOTED, TRANSITIONS_COMMITTED, claim
from infra.progress.progress import Display
from schemas.recipes.recipe import Recipe
from schemas.runs import Trigger


@flow
def retrain(recipe: Recipe, until: Stage = Stage.EVALUATE) -> str:
    """Run the recipe if there is a reason to: from logs to a judged policy, promoted if its gate lets it through.

    If the recipe needs approval, the flow run is suspended until a person answers the form on the Prefect page.
    Returns the run's id, or the decision.
    """
    record = run_recipe(recipe, until, Display(), trigger())
    rename_flow_run(record["run_id"])
    another_asks = record.get("nothing_new") and not was_suspended()
    return ask(record) if needs_approval(record) and not another_asks else record["run_id"]


@flow
def refit(recipe: Recipe, version: str = "") -> str:
    """Fit the experience model alone, on today's logs. Returns the run's id.

    Args:
        recipe: Recipe whose experience model to fit.
        version: Version of the transitions whose commit triggered this run; handled once per commit. Empty: no event.
    """
    if version and not claim(TRANSITIONS_COMMITTED, version, str(flow_run.id)):
        return f"transitions {version} are fitted by another run"
    record = run_recipe(recipe, Stage.EXPERIENCE, Display(), trigger())
    rename_flow_run(record["run_id"])
    return record["run_id"]


@flow
def evaluate_again(run: str = "") -> str:
    """Evaluate and judge a finished run's best policy against today's champion; promote nothing.

    Args:
        run: A run's id, or the start of one; empty: the latest.
    """
    record = find_run(run or None)
    policy = best_policy(record)
    require_candidate(record, policy)
    rename_flow_run(record["run_id"])
    return judge_run(record, policy, Display())["run_id"]


@flow
def maintenance(keep_days: int = 30) -> str:
    """Compact tables; remove old versions and results, and unreferenced objects. Returns what was removed.

    Args:
        keep_days: Days to keep results and unreferenced table versions.
    """
    return in_words(tidy_up(keep_days), keep_days)


@flow
def fine_tune(run: str, policy: str = "") -> str:
    """Continue training exactly the promoted policy of a run in the real environment; nothing earlier is retrained.

    Args:
        run: Run that produced it.
        policy: Digest of the policy whose promotion triggered this run; handled once per promotion. Empty: no event.
    """
    if policy and not claim(POLICY_PROMOTED, policy, str(flow_run.id)):
        return f"policy {policy[:12]} is fine-tuned by another run"
    record = find_run(run)
    rename_flow_run(record["run_id"])
    return fine_tune_run(record, policy, Display())["run_id"]


def trigger() -> Trigger:
    """Return what started this flow run; a person, if the function is called outside one."""
    begun = present_flow_run()
    if begun is None:
        return Trigger.HAND
    if begun.auto_scheduled:
        return Trigger.SCHEDULE
    by_automation = begun.created_by is not None and begun.created_by.type == "AUTOMATION"
    return Trigger.EVENT if by_automation else Trigger.HAND
