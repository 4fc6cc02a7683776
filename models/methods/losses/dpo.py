"""Preference loss of DPO on pairs of a group's episodes, online or semi-online (arXiv 2305.18290, 2506.21495)."""

from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from models.methods.losses import Batch, Loss
from schemas.recipes.section import Section


class DpoOptions(Section):
    """Options of the preference loss."""

    beta: float = Field(default=0.1, gt=0)
    """Scale of the log-ratios to the starting policy: the larger, the closer the policy stays to it."""


class Dpo(Loss[DpoOptions]):
    """Preference of an episode above its group's mean return over one below, both drawn at random.

    Dreams of older policies can be used, so `dream.max_staleness` makes it semi-online: rounds are dreamt that many
    rounds in advance.

    Source: arXiv 2305.18290, Eq. 7, over all action tokens of an episode; pairs as in arXiv 2506.21495.
    """

    Options = DpoOptions
    unit = "pair"

    @property
    def needs_reference(self) -> bool:
        """True: log-ratios are to the starting policy."""
        return True

    @property
    def corrects_staleness(self) -> bool:
        """True: a preference holds whichever policy played the episodes."""
        return True

    def rl(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Return the loss summed over pairs, and sums to log; of each pair, the better episode comes first."""
        assert batch.reference_logprobs_N is not None
        log_ratios = batch.per_episode(batch.logprobs_N - batch.reference_logprobs_N)
        better, worse = log_ratios.view(-1, 2).unbind(1)
        margins = self.options.beta * (better - worse)
        sums = {"preferred": float((margins > 0).sum()), "margin": float(margins.detach().sum())}
        return -F.logsigmoid(margins).sum(), sums
