"""Improve the experience model's reviews of its own predictions by what they are worth, with reinforcement learning.

in:  experience model that was taught to judge, real trajectories
out: experience model
"""

from collections.abc import Sequence
from typing import Any

from models.examples.reviews import Lesson, review_group
from models.experience.experience_model import parse_prediction
from models.experience.predictors import LocalPredictor
from models.methods.importance import corrected_for
from models.methods.judges import TaughtJudge, TaughtOptions
from models.training.jobs import PolicyUpdateJob
from schemas.recipes.learning import RlRecipe
from schemas.recipes.networks import TrainingRecipe
from schemas.recipes.recipe import PlayRecipe
from schemas.records import Reference
from schemas.sampling import Sampled
from tasks.judging.teach_judge import lessons_of, taught_judge
from tasks.learning.run_training import updated
from tasks.running.artifacts import put_model
from tasks.running.predictors import open_predictor
from tasks.running.versioned import versioned_task

_LESSONS = 700_001
"""Seed offset between the lessons of two rounds."""

_Reviewed = tuple[list[int], list[Sampled], list[float]]
"""Prompt of a lesson, its reviews, and the worth of each."""


@versioned_task
def improve_judge(
    experience_model: Reference,
    reference: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    updates: RlRecipe,
    training: TrainingRecipe,
    round: int,
) -> dict[str, Any]:
    """Return the experience model after a round of updates on sampled reviews, and metrics.

    A review that cannot be parsed has no worth and is left out.

    Args:
        experience_model: Model to improve, with the state of its optimiser.
        reference: Model that losses may refer to: the one that was taught.
        experience: Real trajectories.
        recipe: Sections of the experience model, its judge, its engine and retrieval.
        updates: Settings of the updates.
        training: Whether all weights are trained, or adapters.
        round: Number of the round, counted from 0.
    """
    judge = taught_judge(recipe)
    options = judge.options
    seed = recipe.seed + _LESSONS * (round + 1)
    lessons = lessons_of(experience_model, experience, recipe, judge, options.situations_per_round, seed)
    reviewed = _reviewed(experience_model, lessons, recipe, judge, seed)
    groups = [group for number, one in enumerate(reviewed) if (group := review_group(*one, f"{number}"))]
    metrics = {**_metrics(reviewed, options), "lessons_trained": len(groups) / max(1, len(lessons))}
    if not groups:
        return {"model": experience_model, "metrics": metrics}
    corrected = corrected_for(updates, recipe.engine)
    update = PolicyUpdateJob(groups, corrected, round, training.tokens_per_batch)
    model, state, learnt = updated(experience_model, reference, update, training, "judge")
    return {"model": put_model(model, experience_model, state, round=round), "metrics": metrics | learnt}


def _reviewed(
    experience_model: Reference, lessons: Sequence[Lesson], recipe: PlayRecipe, judge: TaughtJudge, seed: int
) -> list[_Reviewed]:
    """Sample reviews of each lesson; those that cannot be parsed are left out."""
    predictor = open_predictor(experience_model, recipe.engine, recipe.experience, seed)
    assert isinstance(predictor, LocalPredictor)
    format, size = predictor.format, judge.options.group_size
    prompts = [format.situation(one.query).ids for one in lessons]
    found: list[_Reviewed] = []
    for prompt, lesson in zip(prompts, lessons, strict=True):
        reviews = predictor.sample([prompt] * size, temperature=1.0)
        texts = [format.as_prediction(lesson.query, predictor.text_of(one)) for one in reviews]
        steps = [parse_prediction(lesson.query, text) for text in texts]
        whole = [(one, step) for one, step in zip(reviews, steps, strict=True) if not step.failure]
        truth, predictions = lesson.transition.truth, lesson.query.predictions
        worths = [judge.reward(step, predictions, truth) for _, step in whole]
        found.append((prompt, [one for one, _ in whole], worths))
    return found


def _metrics(reviewed: Sequence[_Reviewed], options: TaughtOptions) -> dict[str, float]:
    worths = [worth for *_, several in reviewed for worth in several]
    return {
        "review_reward": sum(worths) / max(1, len(worths)),
        "reviews_unparsable": 1 - len(worths) / max(1, len(reviewed) * options.group_size),
    }
