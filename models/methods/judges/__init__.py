"""Judge: whether a dreamt transition can be trusted."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from models.methods.method import Method, OptionsT, open_method
from models.text.prompts import TransitionQuery
from schemas.recipes.learning import RlRecipe
from schemas.recipes.methods import JudgeRecipe, LossRecipe
from schemas.recipes.section import Section
from schemas.records import Step

Sample = Callable[[Sequence[TransitionQuery]], list[Step | None]]
"""Predict a step for each situation once more, sampled; None for one that cannot be parsed, or is known to be wrong.

A situation with predictions is answered with a review of them.
"""


class Judge(Method[OptionsT]):
    """Port of methods that review what the experience model predicted."""

    @abstractmethod
    def review(self, situations: Sequence[TransitionQuery], steps: Sequence[Step], sample: Sample) -> list[Step]:
        """Return the steps that count, one per situation: as predicted, or others in their place.

        Args:
            situations: Situations with their retrieved demonstrations.
            steps: Predicted steps.
            sample: Asks the experience model for further predictions.
        """


class TaughtOptions(Section):
    """Options of a judge that the experience model is taught to be."""

    num_predictions: int = Field(default=4, ge=1)
    """Number of predictions that it is shown, including the first."""
    only_successes: bool = True
    """Review dreamt successes only, which are what trains the policy; False: review every prediction."""
    num_situations: int = Field(default=1024, ge=2)
    """Number of real transitions to predict, half of them ends of episodes, as far as there are so many; those whose
    predictions are reviewed are learnt from."""
    epochs: float = Field(default=1.0, gt=0)
    """Passes over the examples in which a review is the real step."""
    num_rounds: int = Field(default=4, ge=0)
    """Number of rounds of reinforcement learning after that."""
    situations_per_round: int = Field(default=64, ge=1)
    """Number of transitions that are predicted in a round."""
    group_size: int = Field(default=8, ge=2)
    """Number of reviews of each."""
    learning_rate: float = Field(default=4e-4, gt=0)
    """Learning rate of both."""


class TaughtJudge(Judge[TaughtOptions]):
    """Judge that the experience model is taught to be: it is shown predictions, and writes the one that counts."""

    Options = TaughtOptions
    loss: ClassVar[str] = "clipped"
    """Loss of the reinforcement learning."""

    @property
    def updates(self) -> RlRecipe:
        """Settings of an update in the reinforcement learning."""
        loss, rate = LossRecipe(name=self.loss), self.options.learning_rate
        return RlRecipe(loss=loss, learning_rate=rate, warmup_updates=0, temperature=1.0)

    @abstractmethod
    def reward(self, review: Step, predictions: Sequence[Step], truth: Step) -> float:
        """Return the worth of a review.

        Args:
            review: Step that counts after the review.
            predictions: Predictions that were reviewed, the experience model's own first.
            truth: Step of the real environment.
        """

    def decided(self, review: Step, predictions: Sequence[Step]) -> Step:
        """Return the step that counts, by what the review says; the review itself by default."""
        del predictions
        return review

    def review(self, situations: Sequence[TransitionQuery], steps: Sequence[Step], sample: Sample) -> list[Step]:
        """Return the steps, those in doubt as the review says; one that cannot be parsed changes nothing."""
        reviewed = list(steps)
        places = [place for place, step in enumerate(steps) if self.reviews(step)]
        shown = self.shown([situations[place] for place in places], [steps[place] for place in places], sample)
        doubtful = [pair for pair in zip(places, shown, strict=True) if self.is_doubtful(pair[1].predictions)]
        for (place, query), answer in zip(doubtful, sample([query for _, query in doubtful]), strict=True):
            if answer:
                reviewed[place] = self.decided(answer, query.predictions)
        return reviewed

    def reviews(self, step: Step) -> bool:
        """Return whether a predicted step is reviewed; one that could not be parsed is not."""
        return not step.failure and (step.success or not self.options.only_successes)

    def shown(
        self, situations: Sequence[TransitionQuery], steps: Sequence[Step], sample: Sample
    ) -> list[TransitionQuery]:
        """Return the situations with their predictions: the given steps, and further ones that could be parsed."""
        further = [sample(situations) for _ in range(self.options.num_predictions - 1)]
        return [
            replace(situation, predictions=(step, *filter(None, (votes[place] for votes in further))))
            for place, (situation, step) in enumerate(zip(situations, steps, strict=True))
        ]

    def is_doubtful(self, predictions: Sequence[Step]) -> bool:
        """Return whether there is something to review: predictions that differ, or a single one."""
        return len(predictions) == 1 or not all(are_alike(predictions[0], one) for one in predictions)


def are_alike(one: Step, other: Step) -> bool:
    """Return whether two steps lead to the same state with the same outcome."""
    return (one.state, one.done, one.success) == (other.state, other.done, other.success)


def open_judge(recipe: JudgeRecipe) -> Judge:
    """Return the judge that a recipe names."""
    return open_method(Judge, recipe)
