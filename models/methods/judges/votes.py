"""Votes on dreamt successes: pessimism where the experience model disagrees with itself."""

from collections.abc import Sequence

from pydantic import Field

from models.methods.judges import Judge, Sample
from models.text.prompts import TransitionQuery
from schemas.recipes.section import Section
from schemas.records import Step


class VotesOptions(Section):
    """Options of the votes."""

    num_votes: int = Field(default=1, ge=1)
    """Number of predictions, including the first, that must all agree on a dreamt success before it counts; 1: no vote."""


class Votes(Judge[VotesOptions]):
    """Dreamt successes count if sampled predictions agree; one that denies the success replaces it.

    Differs: the paper's experience model is asked once.
    """

    Options = VotesOptions

    def review(self, situations: Sequence[TransitionQuery], steps: Sequence[Step], sample: Sample) -> list[Step]:
        """Return the steps, each success replaced by a prediction that denies it and says how the episode goes on."""
        reviewed = list(steps)
        for _ in range(self.options.num_votes - 1):
            claimed = [i for i, step in enumerate(reviewed) if step.success]
            for i, vote in zip(claimed, sample([situations[i] for i in claimed]), strict=True):
                if vote and not vote.success:
                    reviewed[i] = vote
        return reviewed
