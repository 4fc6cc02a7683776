"""CISPO: policy gradient with truncated importance weights (MiniMax-M1, arXiv 2506.13585).

Shapes: N action tokens.
"""

from pydantic import Field
from torch import Tensor

from models.methods.importance import ImportanceOptions, importance_weights
from models.methods.losses import Batch, Loss, with_reference_kl
from models.methods.streams import TrainingGroup


class CispoOptions(ImportanceOptions):
    """Options of CISPO."""

    max_ratio: float = Field(default=5.0, ge=1)
    """Maximum of a token's probability ratio; a larger one is truncated, and its gradient stays."""
    kl_coefficient: float = Field(default=0.0, ge=0)
    """Weight of the KL to the starting policy (k3 estimate) at each action token."""


class Cispo(Loss[CispoOptions]):
    """Policy gradient of every action token, weighted by its truncated probability ratio.

    Source: arXiv 2506.13585, Eq. 4 and 5; only the upper side is truncated, as there.
    """

    Options = CispoOptions

    @property
    def needs_reference(self) -> bool:
        """True with a KL term."""
        return self.options.kl_coefficient > 0

    @property
    def corrects_staleness(self) -> bool:
        """True with an importance correction."""
        return self.options.importance_correction != "none"

    def marked(self, group: TrainingGroup) -> TrainingGroup:
        """Return the group with the KL's weight on its action tokens."""
        return with_reference_kl(group, self.options.kl_coefficient)

    def rl(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Return the loss summed over action tokens, and sums to log."""
        importance_N, mismatch = importance_weights(
            batch.old_logprobs_N, batch.sampled_logprobs_N, batch.stream_lengths, self.options
        )
        ratio_N = (batch.logprobs_N - batch.old_logprobs_N).detach().exp()
        weights_N = importance_N * ratio_N.clamp(max=self.options.max_ratio)
        loss_N = -weights_N * batch.advantages_N * batch.logprobs_N
        return loss_N.sum(), {"clipped": float((ratio_N > self.options.max_ratio).sum())} | mismatch
