"""Soft trust in dreamt successes, by how many predictions agree (RESTRAIN, arXiv 2510.02172)."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from models.methods.judges import Judge, Sample
from models.text.prompts import TransitionQuery
from schemas.recipes.section import Section
from schemas.records import Step

_Verdict = tuple[bool, bool]
"""Whether a prediction ends the episode, and whether with success."""


class RestrainOptions(Section):
    """Options of soft trust."""

    num_votes: int = Field(default=4, ge=2)
    """Number of predictions of a claimed success, including the first."""
    sigma: float = Field(default=0.5, gt=0)
    """Width of the Gaussian around full agreement; small ones make trust all or nothing."""
    min_votes: int = Field(default=2, ge=1)
    """kappa: a success that fewer predictions claim is denied."""


class Restrain(Judge[RestrainOptions]):
    """Dreamt successes count by the trust in them: a fraction of 1 where sampled predictions disagree.

    Source: arXiv 2510.02172, pseudo-label weighting; the verdicts of a transition are its answers.
    Differs: a success that is not the most frequent verdict is denied; there is neither a penalty on the advantages of
        such episodes nor a weight of the prompt.
    """

    Options = RestrainOptions

    def review(self, situations: Sequence[TransitionQuery], steps: Sequence[Step], sample: Sample) -> list[Step]:
        """Return the steps, each success with its trust as reward, or replaced by a prediction that denies it."""
        reviewed = list(steps)
        claimed = [place for place, step in enumerate(steps) if step.success]
        asked = [situations[place] for place in claimed]
        votes = zip(*(sample(asked) for _ in range(self.options.num_votes - 1)), strict=True)
        for place, further in zip(claimed, votes, strict=True):
            reviewed[place] = self._judged([steps[place], *(vote for vote in further if vote)])
        return reviewed

    def _judged(self, predictions: Sequence[Step]) -> Step:
        """Return the first prediction with its trust as reward, or a frequent one that denies its success."""
        by_verdict: dict[_Verdict, list[Step]] = defaultdict(list)
        for one in predictions:
            by_verdict[one.done, one.success].append(one)
        counts = {verdict: len(steps) for verdict, steps in by_verdict.items()}
        claim = (True, True)
        denials = {verdict: count for verdict, count in counts.items() if verdict != claim}
        if denials and (counts[claim] < self.options.min_votes or counts[claim] < max(denials.values())):
            return by_verdict[max(denials, key=lambda verdict: denials[verdict])][0]
        shares = {verdict: count / len(predictions) for verdict, count in counts.items()}
        return replace(predictions[0], reward=trust(shares, self.options.sigma)[claim])


def trust(shares: dict[_Verdict, float], sigma: float) -> dict[_Verdict, float]:
    """Return the weight of each verdict: a Gaussian of its share around 1, normalised over the verdicts."""
    weights = {verdict: math.exp(-((share - 1) ** 2) / (2 * sigma**2)) for verdict, share in shares.items()}
    return {verdict: weight / sum(weights.values()) for verdict, weight in weights.items()}
