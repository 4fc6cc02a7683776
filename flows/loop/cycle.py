"""The DreamGym loop: from logs of a real environment to a policy trained in a dream and proven for real.

    ingest -> annotate -> start policy -> its on-policy episodes -> experience model
           -> [ propose -> dream -> train -> calibrate ]* -> evaluate -> gate -> promote -> fine-tune for real

Every step is a versioned task, so a run that was killed resumes after its last finished step.
"""

from prefect import flow

from flows.loop.evaluate_and_judge import evaluate_and_judge, promote_if_allowed
from flows.loop.fine_tune import fine_tune_for_real
from flows.loop.flow_page import log_to_page, show_champion
from flows.loop.lineage import Lineage
from flows.loop.on_logs import judge_in_dreams
from flows.loop.prepare_models import prepare_models
from flows.loop.train_in_the_dream import train_in_the_dream
from flows.stage import Stage
from schemas.recipes.recipe import Recipe
from schemas.runs import LeftBehind
from tasks.running.pins import with_encoder_pinned


@flow(name="cycle", validate_parameters=False)
def cycle(recipe: Recipe, until: Stage, left_behind: LeftBehind) -> Lineage:
    """Run a recipe up to and including a stage.

    Args:
        recipe: Recipe to run.
        until: Last stage to run.
        left_behind: Results of earlier runs that this one reads.
    """
    log_to_page()
    made = Lineage(left_behind=left_behind)
    recipe = with_encoder_pinned(recipe)
    prepare_models(recipe, made, only_ingest=until is Stage.INGEST)
    if until in (Stage.INGEST, Stage.EXPERIENCE):
        return made
    train_in_the_dream(recipe, made)
    if until is Stage.DREAM:
        return made
    if not recipe.environment.can_be_played:
        judge_in_dreams(recipe, made)
        return made
    promote_if_allowed(recipe, made, "dream", evaluate_and_judge(recipe, made))
    if until is Stage.REAL and (made.promoted or recipe.real.unpromoted):
        fine_tune_for_real(recipe, made)
    show_champion(made)
    return made
