"""The flows that deployments run: on a schedule, on an event, or by hand from the Prefect page.

Each takes plain parameters, from which Prefect draws a form, and ends in a cycle's summary in the object store.
"""

from prefect import flow
from prefect.runtime import flow_run

from flows.approval import ask, needs_approval
from flows.find_run import find_run
from flows.judge_run import judge_run
from flows.maintain import tidy_up
from flows.run import run_recipe
from flows.stage import Stage
from infra.announcements import POLICY_PROMOTED, TRANSITIONS_COMMITTED, claim
from infra.progress import Display
from schemas.recipe import Recipe


@flow
def retrain(recipe: Recipe, until: Stage = Stage.EVALUATE) -> str:
    """A whole cycle: from logs to a judged policy, promoted if its gate lets it through. Returns the cycle's id.

    Where the recipe asks for approval, the run is suspended until a person has answered the form in the Prefect page.
    """
    summary = run_recipe(recipe, until, Display())
    return ask(summary) if needs_approval(summary) else summary["run_id"]


@flow
def refit(recipe: Recipe, version: str = "") -> str:
    """The experience model alone, on the logs of today. Returns the cycle's id.

    Args:
        recipe: What to fit.
        version: Of the transitions whose commit set this off; a commit is answered once. Empty: no event did.
    """
    if version and not claim(TRANSITIONS_COMMITTED, version, str(flow_run.id)):
        return f"transitions {version} are fitted by another run"
    return run_recipe(recipe, Stage.EXPERIENCE, Display())["run_id"]


@flow
def evaluate_again(run: str = "") -> str:
    """Evaluate and judge a finished cycle's policy against today's champion, on its pinned tasks; promote nothing.

    Args:
        run: Cycle id, or the start of one; empty: the latest.
    """
    return judge_run(find_run(run or None), Display())["run_id"]


@flow
def maintenance(keep_days: int = 30) -> str:
    """Compact tables; remove old versions and results, and what nothing names any more. Returns what went.

    Args:
        keep_days: Age up to which results, and table versions that nothing names, stay.
    """
    return tidy_up(keep_days)


@flow
def fine_tune(run: str, policy: str = "") -> str:
    """Go on with a promoted policy in the real environment. Returns the cycle's id.

    Args:
        run: The cycle that made it.
        policy: Digest of the policy whose promotion set this off; a promotion is answered once. Empty: no event did.
    """
    if policy and not claim(POLICY_PROMOTED, policy, str(flow_run.id)):
        return f"policy {policy[:12]} is fine-tuned by another run"
    recipe = Recipe.model_validate(find_run(run)["recipe"])
    return run_recipe(recipe, Stage.REAL, Display())["run_id"]
