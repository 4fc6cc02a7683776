"""Correction for tokens that were sampled by another policy than the one at the start of the round.

There are three policies: the one that sampled a token, the *old* one at the start of the round, and the one being
trained. The paper does not distinguish the first two. They differ if the engine rounds differently from the trainer, or
if rollouts are stale.

Shapes: N action tokens of all episodes in a row.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from models.methods.method import method_class
from models.methods.ratios import k3, ratios
from schemas.recipes.learning import RlRecipe
from schemas.recipes.methods import LossRecipe
from schemas.recipes.networks import EngineRecipe
from schemas.recipes.section import Section


class ImportanceOptions(Section):
    """Options of the importance correction."""

    importance_correction: Literal["auto", "none", "token", "sequence"] = "auto"
    """Weigh each action token, or each stream, by its probability under the trainer over that under the engine that
    sampled it: for engines that round differently, and for stale rollouts. auto: token with engine.name = "vllm", whose
    kernels and data type are not the trainer's; none with the torch engine."""

    @property
    def is_corrected(self) -> bool:
        """True if tokens are weighed; where auto is left, the torch engine sampled them."""
        return self.importance_correction in ("token", "sequence")

    max_importance_ratio: float = Field(default=2.0, ge=1)
    """Maximum of these weights; larger ones are truncated."""


def importance_weights(
    old_logprobs_N: Tensor, sampled_logprobs_N: Tensor, lengths: Sequence[int], options: ImportanceOptions
) -> tuple[Tensor, dict[str, float]]:
    """Return each token's probability under the old policy over that under its sampler, truncated; 1 if not configured.

    Args:
        old_logprobs_N: Log-probabilities that the trainer computed before the round.
        sampled_logprobs_N: Log-probabilities from the engine, with its weights at the time of sampling.
        lengths: Number of action tokens of each stream; for the correction by sequence, a stream is the sequence.
        options: Unit of the correction, token or sequence, and the maximum ratio.

    Returns:
        Weights of the surrogate loss [N], and sums to log: raw ratios of tokens, the k3 estimate of the KL from sampler
        to old policy, and the number of truncated weights.
    Source: the decoupled objective of AReaL (arXiv 2505.24298), the old policy being the proximal one; truncated
        importance sampling between engine and trainer as in TRL (token_truncate, sequence_truncate).
    Differs: the paper has no importance weights. Where vLLM samples, they are on by default: with other numbers in
        sampler and trainer, the loss is off-policy without them.
    """
    gaps_N = old_logprobs_N - sampled_logprobs_N
    ratios_N = ratios(gaps_N)
    sums = {"sampler_ratio": float(ratios_N.sum()), "sampler_kl": float(k3(sampled_logprobs_N, old_logprobs_N).sum())}
    if not options.is_corrected:
        return torch.ones_like(gaps_N), sums | {"sampler_capped": 0.0}
    if options.importance_correction == "sequence":
        ratios_N = torch.cat([ratios(gaps.sum()).expand_as(gaps) for gaps in gaps_N.split(list(lengths))])
    num_capped = float((ratios_N > options.max_importance_ratio).sum())
    return ratios_N.clamp(max=options.max_importance_ratio), sums | {"sampler_capped": num_capped}


def corrected_for(rl: RlRecipe, engine: EngineRecipe) -> RlRecipe:
    """Return settings of updates whose loss corrects for the engine, if it can and the recipe leaves that open.

    They are returned as they are for the torch engine, and for a loss without an importance correction.

    Args:
        rl: Settings of the updates.
        engine: Engine that sampled what they learn from.
    """
    return rl.model_copy(update={"loss": corrected_loss(rl.loss, engine)})


def corrected_loss(loss: LossRecipe, engine: EngineRecipe) -> LossRecipe:
    """Return the loss of `corrected_for`."""
    is_open = loss.options.get("importance_correction", "auto") == "auto"
    if engine.name != "vllm" or not is_open or not issubclass(method_class(loss).Options, ImportanceOptions):
        return loss
    return LossRecipe.model_validate({"name": loss.name, **loss.options, "importance_correction": "token"})
