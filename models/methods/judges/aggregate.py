"""Aggregation of predictions by a learnt pass over all of them (AggLM, arXiv 2509.06870)."""

from collections.abc import Sequence

from models.methods.judges import TaughtJudge, are_alike
from schemas.records import Step


class Aggregate(TaughtJudge):
    """Predictions that differ are aggregated by the experience model itself, which may side with the minority.

    Source: arXiv 2509.06870: the reward is whether the aggregated answer is right, by GRPO, on easy and hard cases.
    Differs: it is fine-tuned on right answers first, and predictions that all agree are not aggregated.
    """

    def reward(self, review: Step, predictions: Sequence[Step], truth: Step) -> float:
        """Return 1 if the review is what the real environment did, else 0."""
        del predictions
        return float(are_alike(review, truth))
