"""Train a backbone from logs alone: a tokenizer of their words, and a small network that has read all transitions.

It replaces the pretrained model that the paper starts from, if none is available or none is small enough.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from infra.context import run_context
from models.examples.supervised import experience_example, grounded
from models.experience.plain_experience import PlainExperience
from models.network.language_model import LanguageModel, new_tiny_model
from models.network.tokenizer import train_tokenizer
from models.text.prompts import CONTINUE, FAILURE, SUCCESS, PromptFormat, TransitionQuery
from models.training.sft import Example
from schemas.recipes.data import RetrievalRecipe
from schemas.recipes.networks import ExperienceRecipe, ScratchRecipe, TrainingRecipe
from schemas.records import Reference, Trajectory
from schemas.state_text import changes_between
from tasks.data.retrieval_index import index_over
from tasks.data.rows import trajectory_id
from tasks.learning.run_training import fine_tuned
from tasks.running.artifacts import get_trajectories, put_model
from tasks.running.versioned import versioned_task

_MAX_POSITIONS = 4_096


@versioned_task
def backbone_from_logs(
    logs: Reference,
    recipe: ScratchRecipe,
    retrieval: RetrievalRecipe,
    history_length: int | Literal["all"],
    with_reasoning: bool,
    seed: int,
) -> Reference:
    """Train a small network with its tokenizer.

    Args:
        logs: Annotated logs.
        recipe: Size of the network and length of its training.
        retrieval: Settings of the demonstrations that an experience model will be shown.
        history_length: Number of earlier actions that the experience model will be shown.
        with_reasoning: Whether the experience model will reason.
        seed: Seed of the weights and of the order of examples.
    """
    shown = ExperienceRecipe(history_length=history_length)
    episodes = [episode for episode in get_trajectories(logs) if not episode.failure]
    blank = blank_model(recipe, episodes, seed)
    with run_context().display.timed("examples"):
        index = index_over(retrieval, [logs])
        examples: list[Example] = []
        for episode in episodes:
            own, k = trajectory_id(episode), retrieval.num_demonstrations
            situations = grounded(episode, own, index, shown, k, random.Random(seed))
            examples += whole_transitions(blank.format, episode, situations, with_reasoning)
    begun = put_model(blank)
    plain = TrainingRecipe()
    trained = fine_tuned(begun, examples, recipe.sft, plain, seed, "backbone", relu_share=recipe.relu_share)
    return put_model(trained, begun)


def blank_model(recipe: ScratchRecipe, episodes: Sequence[Trajectory], seed: int) -> LanguageModel:
    """Return an untrained model, with a tokenizer that knows the words of some episodes."""
    return new_tiny_model(
        train_tokenizer(texts_of(episodes), recipe.vocab_size),
        hidden_size=recipe.hidden_size,
        num_layers=recipe.num_layers,
        num_heads=recipe.num_heads,
        max_positions=_MAX_POSITIONS,
        seed=seed,
    )


def texts_of(episodes: Sequence[Trajectory]) -> Iterator[str]:
    """Yield the texts of episodes, each once: of later states only the changes."""
    yield from (CONTINUE, SUCCESS, FAILURE)
    for episode in episodes:
        yield f" {episode.task.instruction}"
        for turn in episode.turns:
            yield from (
                f"\n{changes_between(turn.state, turn.step.state)}",
                f" {turn.action}",
                f" {turn.step.reasoning}",
            )
        yield f"\n{episode.turns[0].state}"


def whole_transitions(
    format: PromptFormat, episode: Trajectory, situations: Sequence[TransitionQuery], with_reasoning: bool
) -> Iterator[Example]:
    """Yield an episode's transitions as an experience model is shown them, with every token as a target."""
    for turn, situation in enumerate(situations):
        example = experience_example(PlainExperience(format), situation, episode, turn, with_reasoning=with_reasoning)
        yield replace(example, is_target=[True] * len(example.ids))
