"""Judge: whether a dreamt transition can be trusted."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from models.methods.method import Method, OptionsT, open_method
from models.text.prompts import TransitionQuery
from schemas.recipes.methods import JudgeRecipe
from schemas.records import Step

Sample = Callable[[Sequence[TransitionQuery]], list[Step | None]]
"""Predict a step for each situation once more, sampled; None for one that cannot be parsed, or is known to be wrong."""


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


def open_judge(recipe: JudgeRecipe) -> Judge:
    """Return the judge that a recipe names."""
    return open_method(Judge, recipe)
