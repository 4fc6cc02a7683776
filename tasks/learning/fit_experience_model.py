"""Fit the experience model: SFT on reasoning, changed lines and outcome (paper, section 4.2, Eq. 5)."""

import random
from collections.abc import Sequence

from infra.context import run_context
from infra.environments.by_name import open_environment
from models.examples.supervised import experience_example, grounded, variation_example
from models.examples.variation_pairs import variation_pairs
from models.experience.experience_format import ExperienceFormat
from models.experience.experience_formats import open_experience_format
from models.text.prompts import TransitionQuery
from models.text.renaming import Renamer, name_pieces, renamed, renamed_situation, renamer, to_invented_names
from models.training.sft import Example
from schemas.ports import RealEnvironment
from schemas.recipes.data import RetrievalRecipe
from schemas.recipes.networks import ExperienceRecipe, TrainingRecipe
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import Reference, Trajectory
from tasks.data.retrieval_index import index_over
from tasks.data.rows import trajectory_id
from tasks.learning.run_training import fine_tuned
from tasks.running.artifacts import get_frozen_model, get_trajectories, put_model
from tasks.running.predictors import put_endpoint_model
from tasks.running.versioned import versioned_task
from tasks.running.workers import by_workers


@versioned_task
def fit_experience_model(
    model: Reference,
    trajectories: list[Reference],
    learnt: list[Reference],
    recipe: ExperienceRecipe,
    training: TrainingRecipe,
    retrieval: RetrievalRecipe,
    environment: EnvironmentRecipe,
    seed: int,
) -> Reference:
    """Train a model to predict the environment, with the demonstrations that retrieval would give it.

    If the recipe names a model at an endpoint, that model is returned, and nothing is trained.

    Args:
        model: Backbone, or an experience model to go on with.
        trajectories: All experience.
        learnt: Experience that the model was trained on before; only a share is shown again, next to new episodes.
        recipe: Settings of the experience model and its training.
        training: Whether all weights are trained, or adapters.
        retrieval: Settings of the demonstrations.
        environment: Environment whose entity names may be replaced.
        seed: Random seed.
    """
    if recipe.endpoint_model:
        return put_endpoint_model(recipe.endpoint_model)
    call = (model, trajectories, learnt, recipe, training, retrieval, environment, seed)
    return by_workers("experience model", fit, [call])[0]


def fit(
    backbone: Reference,
    trajectories: list[Reference],
    learnt: list[Reference],
    recipe: ExperienceRecipe,
    training: TrainingRecipe,
    retrieval: RetrievalRecipe,
    environment: EnvironmentRecipe,
    seed: int,
) -> Reference:
    """Fit the experience model on a worker; see fit_experience_model."""
    model = get_frozen_model(backbone)
    index = index_over(retrieval, trajectories)
    rng = random.Random(seed)
    whole = [episode for episode in get_trajectories(*trajectories) if not episode.failure]
    episodes = new_and_replayed(whole, get_trajectories(*learnt), recipe.replayed_share, rng)
    if not episodes:
        return backbone
    real = open_environment(environment)
    pieces, format = name_pieces(model.tokenizer.get_vocab()), open_experience_format(model.format, recipe)
    dropping = random.Random(f"{seed}/demonstrations")
    examples: list[Example] = []
    with run_context().display.timed("examples"):
        for episode in episodes:
            own = trajectory_id(episode)
            situations = grounded(episode, own, index, recipe, retrieval.num_demonstrations, dropping)
            for new in _renamers(episode, real, recipe.entity_renaming, pieces, rng):
                examples += _examples(format, episode, situations, new, recipe)
        tokens = sorted(sum(example.is_target) for example in examples) or [0]
        pairs = variation_pairs(episodes, recipe.variation_pairs, rng)
        examples += [variation_example(format, *start, *other) for start, other in pairs]
    trained = fine_tuned(backbone, examples, recipe.sft, training, seed, "experience model")
    return put_model(
        trained,
        backbone,
        num_examples=len(examples),
        prediction_tokens_p99=tokens[len(tokens) * 99 // 100],
        prediction_tokens_p999=tokens[len(tokens) * 999 // 1000],
        prediction_tokens_longest=tokens[-1],
    )


def new_and_replayed(
    episodes: list[Trajectory], learnt: list[Trajectory], replayed_share: float, rng: random.Random
) -> list[Trajectory]:
    """Return new episodes, and a sample of learnt ones that makes up replayed_share of the result.

    Without new episodes the result is empty; if nothing was learnt before, it is all episodes.
    """
    known = {trajectory_id(one) for one in learnt}
    new = [one for one in episodes if trajectory_id(one) not in known]
    if len(new) == len(episodes):
        return episodes
    old = [one for one in episodes if trajectory_id(one) in known]
    num_replayed = round(len(new) * replayed_share / (1 - replayed_share))
    return [*new, *rng.sample(old, min(num_replayed, len(old)))]


def cut_off(fitted: Reference, max_new_tokens: int) -> str:
    """Return advice if predictions that a model was fitted to exceed max_new_tokens; else an empty string."""
    p99, p999, longest = (
        int(fitted.notes.get(f"prediction_tokens_{which}", 0)) for which in ("p99", "p999", "longest")
    )
    if longest <= max_new_tokens:
        return ""
    share = "over 1%" if p99 > max_new_tokens else "over 0.1%" if p999 > max_new_tokens else "under 0.1%"
    return (
        f"experience.max_new_tokens = {max_new_tokens} cuts off {share} of the predictions that logs ask for, the longest of "
        f"{longest} tokens, and a dream fails there: raise it; nothing is fitted again"
    )


def _renamers(
    episode: Trajectory, real: RealEnvironment, share: float, pieces: Sequence[str], rng: random.Random
) -> list[Renamer]:
    """Return a renamer that changes nothing and, for a share of episodes, one that invents names."""
    as_it_is = renamer({})
    if rng.random() >= share:
        return [as_it_is]
    return [as_it_is, to_invented_names(real.names(episode.task_as_it_began), [episode], rng, pieces)]


def _examples(
    format: ExperienceFormat,
    episode: Trajectory,
    situations: Sequence[TransitionQuery],
    new: Renamer,
    recipe: ExperienceRecipe,
) -> list[Example]:
    """Return an example of every turn of an episode under one naming; turns that end it come several times."""
    shown = renamed(episode, new)
    examples: list[Example] = []
    for i, situation in enumerate(situations):
        example = experience_example(
            format, renamed_situation(situation, new), shown, i, with_reasoning=recipe.with_reasoning
        )
        examples += [example] * (recipe.rare_outcome_copies if episode.turns[i].step.done else 1)
    return examples
