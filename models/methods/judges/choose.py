"""Choice of one prediction, learnt from preferred and rejected judgements (Meta-Rewarding, arXiv 2407.19594)."""

from collections.abc import Sequence

from models.methods.judges import TaughtJudge, are_alike
from schemas.records import Step


class Choose(TaughtJudge):
    """The experience model judges which of its predictions counts; judgements are preferred by whether they were right.

    Source: arXiv 2407.19594: a model judges its own answers, and learns from pairs of judgements by DPO.
    Differs: the real step of a logged transition says which judgement is better, in place of a meta-judge.
    """

    loss = "dpo"

    def decided(self, review: Step, predictions: Sequence[Step]) -> Step:
        """Return the prediction that the review repeats; the first one if it repeats none."""
        return next((one for one in predictions if are_alike(one, review)), predictions[0])

    def reward(self, review: Step, predictions: Sequence[Step], truth: Step) -> float:
        """Return 1 if the chosen prediction is what the real environment did, else 0."""
        return float(are_alike(self.decided(review, predictions), truth))
