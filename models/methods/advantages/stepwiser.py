"""Step advantages of lost groups by a judge that learnt from dreams what states are worth (StepWiser)."""

from pydantic import Field

from models.methods.advantages.vine import Vine, VineOptions


class StepwiserOptions(VineOptions):
    """Options of the step judge."""

    dreamt_rounds: int = Field(default=4, ge=1)
    """Number of first rounds in which the values are dreamt; then the judge learns from them and says all others. They are
    dreamt for longer if all these dreams ended alike."""
    epochs: float = Field(default=4.0, gt=0)
    """Passes of the judge's training over the outcomes of these dreams."""
    learning_rate: float = Field(default=4e-4, gt=0)
    """Peak learning rate of that training."""


class Stepwiser(Vine):
    """The vine's advantages; after some rounds a judge says what states are worth, and no more dreams go on from them.

    Source: arXiv 2508.19229: a judge of steps learns from the outcomes of rollouts that go on from them; a step is worth
        what it changes.
    Differs: the judge says the chance to win from a state as a probability, by fine-tuning on outcomes as often as they
        came; the paper's labels steps in balanced classes, reasons first, and is trained by GRPO.
    """

    Options = StepwiserOptions
    options: StepwiserOptions

    @property
    def dreamt_rounds(self) -> int:
        """Number of rounds before the judge."""
        return self.options.dreamt_rounds
