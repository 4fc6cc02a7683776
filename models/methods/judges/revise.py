"""Revision of a prediction, rewarded by what it improves (WaltzRL, arXiv 2510.08240)."""

from collections.abc import Sequence

from pydantic import Field

from models.methods.judges import TaughtJudge, TaughtOptions, are_alike
from schemas.records import Step


class ReviseOptions(TaughtOptions):
    """Options of the revision."""

    num_predictions: int = Field(default=1, ge=1)
    """Number of predictions that it is shown, including the first."""


class Revise(TaughtJudge):
    """A prediction is read again and revised; it stays where nothing is gained.

    Source: arXiv 2510.08240: the reward of feedback is how much better the revised answer is.
    Differs: one model writes, reads and revises, and a revision is a prediction, not feedback on one.
    """

    Options = ReviseOptions

    def reward(self, review: Step, predictions: Sequence[Step], truth: Step) -> float:
        """Return what the revision gains: 1 if it rights a wrong prediction, -1 if it spoils a right one, else 0."""
        return float(are_alike(review, truth)) - float(are_alike(predictions[0], truth))
