"""Judging: the experience model is taught to review its own predictions, if the recipe's judge is one of that kind."""

from flows.loop.lineage import log
from models.methods.judges import TaughtJudge, open_judge
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from tasks.judging.improve_judge import improve_judge
from tasks.judging.teach_judge import teach_judge


def taught(recipe: Recipe, model: Reference, experience: list[Reference]) -> Reference:
    """Return an experience model that has learnt to judge; the same one if the recipe's judge needs no teaching.

    A model at an endpoint is not trained, and judges by its instructions.
    """
    judge = open_judge(recipe.experience.judge)
    if not isinstance(judge, TaughtJudge) or recipe.experience.endpoint_model:
        return model
    first = improved = teach_judge(model, experience, recipe.play, recipe.training)
    for round in range(judge.options.num_rounds):
        made = improve_judge(improved, first, experience, recipe.play, recipe.training, round)
        log("judge", made["metrics"], round)
        improved = made["model"]
    return improved
