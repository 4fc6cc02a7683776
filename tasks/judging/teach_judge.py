"""Teach the experience model to review its own predictions, by right reviews of them.

in:  experience model, real trajectories
out: experience model that is its own judge
"""

import random
from dataclasses import replace

from models.examples.reviews import Lesson, balanced, draw_transitions
from models.experience.experience_formats import open_experience_format
from models.methods.judges import TaughtJudge, open_judge
from schemas.recipes.networks import SftRecipe, TrainingRecipe
from schemas.recipes.recipe import PlayRecipe
from schemas.records import Reference
from tasks.data.rows import trajectory_id
from tasks.learning.run_training import fine_tuned
from tasks.playing.play import open_experience_model
from tasks.running.artifacts import get_frozen_model, get_trajectories, put_model
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task


@versioned_task
def teach_judge(
    experience_model: Reference, experience: list[Reference], recipe: PlayRecipe, training: TrainingRecipe
) -> Reference:
    """Return the experience model fine-tuned on right reviews of its predictions, and on right predictions.

    Args:
        experience_model: Model to teach; it goes on predicting.
        experience: Real trajectories.
        recipe: Sections of the experience model, its judge, its engine and retrieval.
        training: Whether all weights are trained, or adapters.
    """
    judge = taught_judge(recipe)
    options = judge.options
    lessons = lessons_of(experience_model, experience, recipe, judge, options.num_situations, recipe.seed)
    format = open_experience_format(get_frozen_model(experience_model).format, recipe.experience)
    kept = balanced(lessons, random.Random(recipe.seed))
    asked = recipe.experience.with_reasoning
    examples = [example for one in kept for example in one.examples(format, with_reasoning=asked)]
    if not examples:
        return experience_model
    sft = SftRecipe(epochs=options.epochs, learning_rate=options.learning_rate)
    trained = fine_tuned(experience_model, examples, sft, training, recipe.seed, "judge")
    num_hard = sum(one.is_hard for one in lessons)
    return put_model(trained, experience_model, num_reviewed=len(lessons), num_hard=num_hard, num_lessons=len(kept))


def taught_judge(recipe: PlayRecipe) -> TaughtJudge:
    """Return the judge to teach."""
    judge = open_judge(recipe.experience.judge)
    assert isinstance(judge, TaughtJudge)
    return judge


def lessons_of(
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    judge: TaughtJudge,
    count: int,
    seed: int,
) -> list[Lesson]:
    """Return real transitions with the model's predictions of them; of those that the judge reviews."""
    use_threads()
    model = open_experience_model(experience_model, experience, recipe, seed)
    real = [one for one in get_trajectories(*experience) if one.origin == "real"]
    drawn = draw_transitions(real, count, random.Random(seed))
    situations = model.ground(
        [replace(one.situation(recipe.experience), trajectory_id=trajectory_id(one.episode)) for one in drawn]
    )
    predicted = zip(drawn, situations, model.unreviewed(situations), strict=True)
    usable = [one for one in predicted if judge.reviews(one[-1])]
    shown = judge.shown([situation for _, situation, _ in usable], [step for *_, step in usable], model.sample)
    return [Lesson(transition, query) for (transition, *_), query in zip(usable, shown, strict=True)]
