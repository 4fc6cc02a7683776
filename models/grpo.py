"""GRPO: group-relative advantages and the clipped token-level objective (paper, Eq. 3).

Shapes: P groups, G episodes each, T tokens, N action tokens of all episodes in a row.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from models.head import target_logprobs
from models.sharding import gathered, shares, summed, whole
from models.transformer import Weights, forward_groups, weights_of
from schemas.records import Tokens, Trajectory


@dataclass(frozen=True, slots=True)
class GrpoOptions:
    """Everything that shapes an update."""

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
    """Updates until the learning rate is reached: Adam's first steps are as long as all others, and blind."""
    negative_scale: float = 1.0
    """Weight of negative advantages."""
    mask_truncated: bool = False
    """Leave episodes that met the step limit out of the loss; else they count as failures."""


@dataclass(frozen=True)
class ScoredGroup:
    """Token streams of one task's episodes, each with the advantage of its episode."""

    tokens: list[Tokens]
    advantages: list[float]

    @cached_property
    def prefix_length(self) -> int:
        """Tokens that all streams share before the first action."""
        limit = min(one.is_action.index(True) for one in self.tokens)
        first = self.tokens[0].ids
        return next((i for i in range(limit) if any(one.ids[i] != first[i] for one in self.tokens)), limit)

    @property
    def num_actions(self) -> int:
        """Action tokens in the group."""
        return sum(sum(one.is_action) for one in self.tokens)

    @property
    def padded_tokens(self) -> int:
        """Tokens to compute when all streams are padded to the longest."""
        return len(self.tokens) * max(len(one.ids) for one in self.tokens)


def group_advantages(
    rewards_G: Sequence[float], *, normalise_std: bool = True, leave_one_out: bool = False
) -> list[float]:
    """Reward of each episode relative to its group.

    Args:
        rewards_G: One return per episode.
        normalise_std: Divide by the group's sample standard deviation (plus 1e-4, as TRL does).
        leave_one_out: Compare with the mean of the others (RLOO) instead of the mean of all.

    Raises:
        ValueError: fewer than two episodes: a lone one has nobody to be compared with.
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


def informative_groups(
    groups: Sequence[Sequence[Trajectory]], options: GrpoOptions
) -> tuple[list[ScoredGroup], dict[str, int]]:
    """Groups that teach something, and how many were left out and why.

    A failed episode has no reward, and what is left of its group is no fair sample, so a group that is not
    whole never trains. One whose returns are all exactly equal has no advantage; it is counted as solved or unsolved.
    """
    scored: list[ScoredGroup] = []
    counts = {"broken": 0, "all_succeeded": 0, "all_failed": 0}
    for group in groups:
        rewards = [trajectory.reward for trajectory in group]
        if any(trajectory.failure for trajectory in group):
            counts["broken"] += 1
        elif len(set(rewards)) == 1:
            counts["all_succeeded" if rewards[0] > 0 else "all_failed"] += 1
        else:
            scored.append(_scored(group, rewards, options))
    return scored, counts


def _scored(group: Sequence[Trajectory], rewards: list[float], options: GrpoOptions) -> ScoredGroup:
    advantages = group_advantages(rewards, normalise_std=options.normalise_std, leave_one_out=options.leave_one_out)
    advantages = [a if a > 0 else a * options.negative_scale for a in advantages]
    kept = [(t, a) for t, a in zip(group, advantages, strict=True) if not (options.mask_truncated and t.truncated)]
    streams = [(stream, a) for t, a in kept for stream in t.tokens]
    return ScoredGroup([stream for stream, _ in streams], [a for _, a in streams])


def action_logprobs(weights: Weights, groups: Sequence[ScoredGroup], temperature: float) -> Tensor:
    """Log-probabilities of all action tokens, [N], in the order of groups, streams, tokens."""
    prefixes = [group.tokens[0].ids[: group.prefix_length] for group in groups]
    suffixes = [[one.ids[group.prefix_length :] for one in group.tokens] for group in groups]
    hidden = forward_groups(weights, prefixes, suffixes)
    rows, positions, targets = _action_places(groups).to(weights.device).unbind(1)
    return target_logprobs(weights, hidden[rows, positions], targets, temperature)


def _action_places(groups: Sequence[ScoredGroup]) -> Tensor:
    """Row and position of the hidden state that predicts each action token, and the token, [N, 3]."""
    places = [
        (row, position, token)
        for row, (one, start) in enumerate((one, g.prefix_length) for g in groups for one in g.tokens)
        for position, (token, action) in enumerate(zip(one.ids[start:], one.is_action[start:], strict=True))
        if action
    ]
    return torch.tensor(places)


def token_advantages(groups: Sequence[ScoredGroup]) -> Tensor:
    """Each episode's advantage at each of its action tokens, [N]."""
    return torch.tensor(
        [a for g in groups for one, a in zip(g.tokens, g.advantages, strict=True) for action in one.is_action if action]
    )


def objective(
    logprobs_N: Tensor,
    old_logprobs_N: Tensor,
    reference_logprobs_N: Tensor | None,
    advantages_N: Tensor,
    options: GrpoOptions,
) -> tuple[Tensor, dict[str, float]]:
    """Sum over action tokens of the clipped surrogate loss plus the k3 estimate of the KL to the reference.

    Returns:
        Loss summed over tokens (divide by the number of tokens of the whole batch), and sums to log.
    Source: paper, section 2 and Eq. 3; k3 is exp(d) - d - 1 with d = reference - current.
    """
    ratio_N = (logprobs_N - old_logprobs_N).exp()
    clipped_N = ratio_N.clamp(1 - options.clip_low, 1 + options.clip_high)
    loss_N = -torch.minimum(ratio_N * advantages_N, clipped_N * advantages_N)
    sums = {"clipped": float(((clipped_N != ratio_N) & (clipped_N * advantages_N < ratio_N * advantages_N)).sum())}
    if reference_logprobs_N is not None and options.kl_coefficient > 0:
        difference_N = reference_logprobs_N - logprobs_N
        kl_N = difference_N.exp() - difference_N - 1
        loss_N = loss_N + options.kl_coefficient * kl_N
        sums["kl"] = float(kl_N.detach().sum())
    return loss_N.sum(), sums


def micro_batches(groups: Sequence[ScoredGroup], max_tokens: int) -> Iterator[list[ScoredGroup]]:
    """Groups of like length together, at most max_tokens with padding in each batch, at least one group."""
    batch: list[ScoredGroup] = []
    for group in sorted(groups, key=lambda group: group.padded_tokens):
        if batch and sum(one.padded_tokens for one in batch) + group.padded_tokens > max_tokens:
            yield batch
            batch = []
        batch.append(group)
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class _Micro:
    """Groups that are computed at once."""

    groups: list[ScoredGroup]
    share: float
    """What it counts on this rank."""
    old_logprobs_N: Tensor
    reference_logprobs_N: Tensor | None


class GrpoTrainer:
    """Updates a policy in place from scored groups; several ranks do it together, each with its share of micro-batches."""

    def __init__(self, network: Any, reference: Any | None, options: GrpoOptions, dtype: torch.dtype) -> None:
        """A trainer with its own optimiser.

        Args:
            network: The policy.
            reference: What the KL term holds on to; None for none.
            options: See GrpoOptions.
            dtype: Of the matrix products; weights and losses stay float32.
        """
        self.network, self.options, self._dtype = network, options, dtype
        self._reference = reference if options.kl_coefficient > 0 else None
        self.optimizer = torch.optim.AdamW(
            network.parameters(), lr=options.learning_rate, betas=(0.9, 0.95), weight_decay=0.0
        )

    def train(self, groups: Sequence[ScoredGroup]) -> dict[str, float]:
        """One round of updates on fresh groups; returns metrics averaged over action tokens."""
        size = math.ceil(len(groups) / self.options.updates_per_round)
        minibatches = [groups[start : start + size] for start in range(0, len(groups), size)]
        prepared = [self._prepared(part) for part in minibatches]
        updates = [self._update(part, batch) for part, batch in zip(minibatches, prepared, strict=True)]
        return {key: sum(update[key] for update in updates) / len(updates) for key in updates[0]}

    @torch.no_grad()
    def _prepared(self, groups: Sequence[ScoredGroup]) -> list[_Micro]:
        """This rank's micro-batches, with log-probabilities before the round, by the same code and in the same shapes."""
        return [
            _Micro(part, share, self._logprobs(self.network, part), self._reference_logprobs(part))
            for part, share in shares(list(micro_batches(groups, self.options.tokens_per_batch)))
        ]

    def _reference_logprobs(self, groups: list[ScoredGroup]) -> Tensor | None:
        return None if self._reference is None else self._logprobs(self._reference, groups)

    def _logprobs(self, network: Any, groups: list[ScoredGroup]) -> Tensor:
        def compute() -> Tensor:
            return action_logprobs(weights_of(network, self._dtype), groups, self.options.temperature)

        return gathered(network, compute)

    def _warm_up(self) -> None:
        """Set the learning rate of the next update; how many there were is in the optimiser's own state."""
        done = max((int(state["step"]) for state in self.optimizer.state.values()), default=0)
        share = min(1.0, (done + 1) / max(1, self.options.warmup_updates))
        for group in self.optimizer.param_groups:
            group["lr"] = share * self.options.learning_rate

    def _update(self, groups: Sequence[ScoredGroup], batch: list[_Micro]) -> dict[str, float]:
        """One optimiser step; the sum over micro-batches does not depend on how they were cut."""
        num_tokens = sum(group.num_actions for group in groups)
        totals = {"loss": 0.0, "kl": 0.0, "clipped": 0.0}
        for micro in batch:
            logprobs = self._logprobs(self.network, micro.groups)
            advantages = token_advantages(micro.groups).to(logprobs.device)
            loss, sums = objective(logprobs, micro.old_logprobs_N, micro.reference_logprobs_N, advantages, self.options)
            (loss * (micro.share / num_tokens)).backward()
            for key, value in {"loss": loss.item(), **sums}.items():
                totals[key] += micro.share * value
        self._warm_up()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.options.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {key: value / num_tokens for key, value in summed(totals).items()} | {"grad_norm": whole(norm).item()}
