"""Clipped token-level surrogate of GRPO, with a KL term (paper, section 2 and Eq. 3).

Shapes: N action tokens of all episodes in a row.
"""

from pydantic import Field
from torch import Tensor, minimum

from models.methods.importance import importance_weights
from models.methods.losses import Batch
from models.methods.ratios import k3, ratios
from models.methods.surrogate import SurrogateLoss, SurrogateOptions


class ClippedOptions(SurrogateOptions):
    """Options of the clipped surrogate."""

    clip_low: float = Field(default=0.2, gt=0, lt=1)
    """Lower clip range: the ratio is at least 1 - clip_low."""
    clip_high: float = Field(default=0.28, gt=0)
    """Upper clip range: the ratio is at most 1 + clip_high."""
    kl_coefficient: float = Field(default=0.003, ge=0)
    """Weight of the KL term to the starting policy (k3 estimate)."""


class Clipped(SurrogateLoss[ClippedOptions]):
    """Clipped surrogate of each action token's probability ratio, plus a KL term to the starting policy."""

    Options = ClippedOptions

    def rl(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Return the loss summed over action tokens, and sums to log."""
        old_N, sampled_N = batch.old_logprobs_N, batch.sampled_logprobs_N
        importance_N, mismatch = importance_weights(old_N, sampled_N, batch.stream_lengths, self.options)
        loss_N, sums = self._surrogate(batch, importance_N)
        reference_N = batch.reference_logprobs_N
        if reference_N is not None and self.options.kl_coefficient > 0:
            kl_N = k3(batch.logprobs_N, reference_N)
            loss_N = loss_N + self.options.kl_coefficient * kl_N
            sums["kl"] = float(kl_N.detach().sum())
        return loss_N.sum(), sums | mismatch

    def _surrogate(self, batch: Batch, importance_N: Tensor) -> tuple[Tensor, dict[str, float]]:
        options, advantages_N = self.options, batch.advantages_N
        ratio_N = ratios(batch.logprobs_N - batch.old_logprobs_N)
        clipped_N = ratio_N.clamp(1 - options.clip_low, 1 + options.clip_high)
        loss_N = -importance_N * minimum(ratio_N * advantages_N, clipped_N * advantages_N)
        is_clipped_N = (clipped_N != ratio_N) & (clipped_N * advantages_N < ratio_N * advantages_N)
        return loss_N, {"clipped": float(is_clipped_N.sum())}
