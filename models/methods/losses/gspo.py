"""Sequence-level surrogate of GSPO (arXiv 2507.18071).

Shapes: N action tokens; S streams.
"""

from pydantic import Field
from torch import Tensor, minimum

from models.methods.importance import importance_weights
from models.methods.losses import Batch, with_reference_kl
from models.methods.ratios import ratios
from models.methods.streams import TrainingGroup
from models.methods.surrogate import SurrogateLoss, SurrogateOptions


class GspoOptions(SurrogateOptions):
    """Options of the sequence-level surrogate."""

    clip_low: float = Field(default=3e-4, gt=0, lt=1)
    """Lower clip range of the ratio of a stream, the geometric mean over its tokens; much smaller than a token's."""
    clip_high: float = Field(default=4e-4, gt=0)
    """Upper clip range of that ratio."""


class Gspo(SurrogateLoss[GspoOptions]):
    """Clipped surrogate of each stream's probability ratio, length-normalised.

    Source: arXiv 2507.18071, Eq. 5 to 7.
    Differs: a stream is what the policy saw and wrote at once, a whole episode or one turn; its advantage is the mean over
        its action tokens, which the paper's streams have in common.
    """

    Options = GspoOptions
    unit = "stream"

    def marked(self, group: TrainingGroup) -> TrainingGroup:
        """Return the group with the KL's weight on its action tokens."""
        return with_reference_kl(group, self.options.kl_coefficient)

    def rl(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Return the loss summed over streams, and sums to log."""
        options, lengths_S = self.options, batch.logprobs_N.new_tensor(batch.stream_lengths)
        importance_N, mismatch = importance_weights(
            batch.old_logprobs_N, batch.sampled_logprobs_N, batch.stream_lengths, options
        )
        ratio_S = ratios(batch.per_stream(batch.logprobs_N - batch.old_logprobs_N) / lengths_S)
        clipped_S = ratio_S.clamp(1 - options.clip_low, 1 + options.clip_high)
        advantages_S = batch.per_stream(batch.advantages_N) / lengths_S
        weights_S = batch.per_stream(importance_N) / lengths_S
        loss_S = -weights_S * minimum(ratio_S * advantages_S, clipped_S * advantages_S)
        is_clipped_S = (clipped_S != ratio_S) & (clipped_S * advantages_S < ratio_S * advantages_S)
        return loss_S.sum(), {"clipped": float(is_clipped_S.sum())} | mismatch
