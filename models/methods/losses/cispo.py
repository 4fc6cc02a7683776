"""CISPO: policy gradient with truncated importance weights (MiniMax-M1, arXiv 2506.13585).

Shapes: N action tokens.
"""

from pydantic import Field
from torch import Tensor

from models.methods.importance import importance_weights
from models.methods.losses import Batch, with_reference_kl
from models.methods.ratios import ratios
from models.methods.streams import TrainingGroup
from models.methods.surrogate import SurrogateLoss, SurrogateOptions


class CispoOptions(SurrogateOptions):
    """Options of CISPO."""

    max_ratio: float = Field(default=5.0, ge=1)
    """Maximum of a token's probability ratio; a larger one is truncated, and its gradient stays."""


class Cispo(SurrogateLoss[CispoOptions]):
    """Policy gradient of every action token, weighted by its truncated probability ratio.

    Source: arXiv 2506.13585, Eq. 4 and 5; only the upper side is truncated, as there.
    """

    Options = CispoOptions

    def marked(self, group: TrainingGroup) -> TrainingGroup:
        """Return the group with the KL's weight on its action tokens."""
        return with_reference_kl(group, self.options.kl_coefficient)

    def rl(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Return the loss summed over action tokens, and sums to log."""
        importance_N, mismatch = importance_weights(
            batch.old_logprobs_N, batch.sampled_logprobs_N, batch.stream_lengths, self.options
        )
        ratio_N = ratios(batch.logprobs_N - batch.old_logprobs_N).detach()
        weights_N = importance_N * ratio_N.clamp(max=self.options.max_ratio)
        loss_N = -weights_N * batch.advantages_N * batch.logprobs_N
        return loss_N.sum(), {"clipped": float((ratio_N > self.options.max_ratio).sum())} | mismatch
