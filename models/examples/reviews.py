"""Lessons in reviewing predictions: what the experience model predicted of a real transition, and what was right."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from models.examples.supervised import experience_example, situations_of
from models.experience.experience_format import ExperienceFormat
from models.methods.advantages.grpo import group_advantages
from models.methods.judges import are_alike
from models.methods.streams import TrainingGroup, TrainingStream, answered
from models.text.prompts import TransitionQuery
from models.training.sft import Example
from schemas.recipes.networks import ExperienceRecipe
from schemas.records import Step, Trajectory
from schemas.sampling import Sampled

_MIN_EASY_SHARE = 0.25
"""Smallest share of easy lessons, next to all hard ones."""


@dataclass(frozen=True, slots=True)
class Transition:
    """Turn of a real episode."""

    episode: Trajectory
    turn: int

    @property
    def truth(self) -> Step:
        """Step that the real environment took."""
        return self.episode.turns[self.turn].step

    def situation(self, recipe: ExperienceRecipe) -> TransitionQuery:
        """Return the situation before it, still without demonstrations."""
        return situations_of(self.episode, recipe)[self.turn]


@dataclass(frozen=True, slots=True)
class Lesson:
    """Transition with the predictions of it."""

    transition: Transition
    query: TransitionQuery
    """Situation with the predictions to review."""

    @property
    def is_hard(self) -> bool:
        """True if not even half of the predictions are right."""
        predictions, truth = self.query.predictions, self.transition.truth
        return 2 * sum(are_alike(one, truth) for one in predictions) < len(predictions)

    def examples(self, format: ExperienceFormat, *, with_reasoning: bool) -> list[Example]:
        """Return the right review as the target, and the right prediction, so that predicting is not forgotten."""
        asked = self.query, replace(self.query, predictions=())
        episode, turn = self.transition.episode, self.transition.turn
        return [experience_example(format, one, episode, turn, with_reasoning=with_reasoning) for one in asked]


def draw_transitions(episodes: Sequence[Trajectory], count: int, rng: random.Random) -> list[Transition]:
    """Return transitions of episodes that did not fail, half of them ends, or as many as there are."""
    all_turns = [Transition(one, turn) for one in episodes if not one.failure for turn in range(len(one.turns))]
    ends = [one for one in all_turns if one.truth.done]
    others = [one for one in all_turns if not one.truth.done]
    drawn = rng.sample(ends, min(count // 2, len(ends)))
    drawn += rng.sample(others, min(count - len(drawn), len(others)))
    return rng.sample(drawn, len(drawn))


def balanced(lessons: Sequence[Lesson], rng: random.Random) -> list[Lesson]:
    """Return all hard lessons and as many easy ones, at least a quarter of these (AggLM, arXiv 2509.06870)."""
    hard, easy = ([one for one in lessons if one.is_hard == wanted] for wanted in (True, False))
    num_easy = min(len(easy), max(len(hard), round(_MIN_EASY_SHARE * len(lessons))))
    chosen = [*hard, *rng.sample(easy, num_easy)]
    return rng.sample(chosen, len(chosen))


def review_group(
    prompt: Sequence[int], reviews: Sequence[Sampled], rewards: Sequence[float], group_id: str
) -> TrainingGroup | None:
    """Return the reviews of one lesson as a group to train on; None if they are worth the same.

    Args:
        prompt: Token ids that all reviews answer.
        reviews: Sampled reviews that could be parsed.
        rewards: Worth of each.
        group_id: Id of the group.
    """
    if len(set(rewards)) < 2:
        return None
    streams = [
        TrainingStream(answered(prompt, one.ids, one.logprobs), [advantage], number)
        for number, (one, advantage) in enumerate(zip(reviews, group_advantages(rewards), strict=True))
    ]
    return TrainingGroup(streams, [*rewards], group_id)
