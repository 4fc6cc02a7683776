"""The objective of GRPO: group-relative advantages and the clipped token-level loss (paper, Eq. 3).

There are three policies: the one that sampled a token, the *old* one at the start of the round, and the one being
trained. The paper does not distinguish the first two. They differ if the engine rounds differently from the trainer, or
if rollouts are stale.

Shapes: G episodes of a group, N action tokens of all episodes in a row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class GrpoOptions:
    """Settings of a policy update."""

    learning_rate: float = 4e-4
    clip_low: float = 0.2
    clip_high: float = 0.28
    kl_coefficient: float = 0.01
    normalise_std: bool = True
    leave_one_out: bool = False
    temperature: float = 1.0
    updates_per_round: int = 2
    tokens_per_batch: int = 16_000
    max_grad_norm: float = 1.0
    warmup_updates: int = 0
    """Number of updates until the learning rate is reached: Adam's first steps are as long as all others, but blind."""
    negative_scale: float = 1.0
    """Weight of negative advantages."""
    mask_truncated: bool = False
    """True to leave episodes that met the step limit out of the loss; otherwise they count as failures."""
    importance_correction: Literal["none", "token", "sequence"] = "none"
    """Unit of the importance correction; see `importance_weights`."""
    max_importance_ratio: float = 2.0


def group_advantages(
    rewards_G: Sequence[float], *, normalise_std: bool = True, leave_one_out: bool = False
) -> list[float]:
    """Return the reward of each episode relative to its group.

    Args:
        rewards_G: One return per episode.
        normalise_std: Divide by the group's sample standard deviation (plus 1e-4, as TRL does).
        leave_one_out: Compare with the mean of the others (RLOO) instead of the mean of all.

    Raises:
        ValueError: fewer than two episodes: a single one has nothing to be compared with.
    Source: paper, Eq. 3; the reward is the episode's return and holds for each of its action tokens.
    """
    count = len(rewards_G)
    if count < 2:
        raise ValueError(f"a group needs at least 2 episodes, not {count}")
    mean = sum(rewards_G) / count
    scale = count / (count - 1) if leave_one_out else 1.0
    centred = [(reward - mean) * scale for reward in rewards_G]
    if not normalise_std:
        return centred
    std = math.sqrt(sum((reward - mean) ** 2 for reward in rewards_G) / (count - 1))
    return [advantage / (std + 1e-4) for advantage in centred]


def importance_weights(
    old_logprobs_N: Tensor, sampled_logprobs_N: Tensor, lengths: Sequence[int], options: GrpoOptions
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
    Differs: the paper has no importance weights.
    """
    gaps_N = old_logprobs_N - sampled_logprobs_N
    ratios_N = gaps_N.exp()
    sums = {"sampler_ratio": float(ratios_N.sum()), "sampler_kl": float((ratios_N - 1 - gaps_N).sum())}
    if options.importance_correction == "none":
        return torch.ones_like(gaps_N), sums | {"sampler_capped": 0.0}
    if options.importance_correction == "sequence":
        ratios_N = torch.cat([gaps.sum().exp().expand_as(gaps) for gaps in gaps_N.split(list(lengths))])
    num_capped = float((ratios_N > options.max_importance_ratio).sum())
    return ratios_N.clamp(max=options.max_importance_ratio), sums | {"sampler_capped": num_capped}


def objective(
    logprobs_N: Tensor,
    old_logprobs_N: Tensor,
    reference_logprobs_N: Tensor | None,
    advantages_N: Tensor,
    options: GrpoOptions,
    importance_N: Tensor | float = 1.0,
) -> tuple[Tensor, dict[str, float]]:
    """Return the sum over action tokens of the clipped surrogate loss plus the k3 estimate of the KL to the reference.

    Args:
        logprobs_N: Log-probabilities under the policy being trained; gradients flow through them alone.
        old_logprobs_N: Log-probabilities under the policy at the start of the round.
        reference_logprobs_N: Log-probabilities under the reference of the KL term; None for no KL term.
        advantages_N: Advantage of each token's episode.
        options: Clip range and weight of the KL.
        importance_N: Weights from importance_weights.

    Returns:
        Loss summed over tokens (divide by the number of tokens of the whole batch), and sums to log.
    Source: paper, section 2 and Eq. 3; k3 is exp(d) - d - 1 with d = reference - current.
    """
    ratio_N = (logprobs_N - old_logprobs_N).exp()
    clipped_N = ratio_N.clamp(1 - options.clip_low, 1 + options.clip_high)
    loss_N = -importance_N * torch.minimum(ratio_N * advantages_N, clipped_N * advantages_N)
    sums = {"clipped": float(((clipped_N != ratio_N) & (clipped_N * advantages_N < ratio_N * advantages_N)).sum())}
    if reference_logprobs_N is not None and options.kl_coefficient > 0:
        difference_N = reference_logprobs_N - logprobs_N
        kl_N = difference_N.exp() - difference_N - 1
        loss_N = loss_N + options.kl_coefficient * kl_N
        sums["kl"] = float(kl_N.detach().sum())
    return loss_N.sum(), sums
