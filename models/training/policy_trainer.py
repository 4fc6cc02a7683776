"""GRPO: rounds of updates of a policy on fresh groups (paper, Eq. 3).

Shapes: N action tokens of all groups, in the order of groups, streams and tokens.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import torch
from torch import Tensor, nn

from models.methods.groups import ScoredGroup, micro_batches, sampled_logprobs, stream_lengths, token_advantages
from models.methods.objective import GrpoOptions, importance_weights, objective
from models.network.head import target_logprobs
from models.network.packed import forward_groups
from models.network.sharding import all_reduce_sum, full_tensor, local_shards, with_full_parameters
from models.network.transformer import Weights, weights_of


def action_logprobs(weights: Weights, groups: Sequence[ScoredGroup], temperature: float) -> Tensor:
    """Return log-probabilities of all action tokens, [N], in order; equal streams are computed once."""
    prefixes = [group.tokens[0].ids[: group.prefix_length] for group in groups]
    suffixes = [[one.ids[group.prefix_length :] for one in group.distinct] for group in groups]
    hidden = forward_groups(weights, prefixes, suffixes)
    places, targets = _action_places(groups).to(weights.device).unbind(1)
    logprobs = target_logprobs(weights, hidden[places], targets, temperature)
    return logprobs.index_select(0, _computed_for(groups).to(weights.device))


def _action_places(groups: Sequence[ScoredGroup]) -> Tensor:
    """Return the predicting hidden state's index (see `forward_groups`) and the id of each distinct action token."""
    places: list[tuple[int, int]] = []
    prefix_end, next_place = 0, sum(group.prefix_length for group in groups)
    for group in groups:
        prefix_end += group.prefix_length
        for one in group.distinct:
            own, actions = one.ids[group.prefix_length :], one.is_action[group.prefix_length :]
            before = [prefix_end - 1, *range(next_place, next_place + len(own) - 1)]
            places += [(place, token) for place, token, action in zip(before, own, actions, strict=True) if action]
            next_place += len(own)
    return torch.tensor(places)


def _computed_for(groups: Sequence[ScoredGroup]) -> Tensor:
    """Return the index of each action token of all streams, [N], among those of distinct streams."""
    numbers: list[int] = []
    first = 0
    for group in groups:
        counts = [sum(one.is_action) for one in group.distinct]
        starts = list(accumulate(counts, initial=first))
        numbers += chain(*(range(starts[twin], starts[twin + 1]) for twin in group.duplicate_of))
        first = starts[-1]
    return torch.tensor(numbers)


@dataclass(frozen=True, slots=True)
class _Micro:
    """Groups that are computed at once."""

    groups: list[ScoredGroup]
    share: float
    """Factor of the groups on this rank: 1, or 0 for a repeated micro-batch."""
    old_logprobs_N: Tensor | None
    """Log-probabilities under the policy at the start of the round; None: that policy is the one being trained."""


class GrpoTrainer:
    """Trainer that updates a policy in place from scored groups; several ranks share the micro-batches."""

    def __init__(self, network: Any, reference: Any | None, options: GrpoOptions, dtype: torch.dtype) -> None:
        """Create a trainer with its own optimiser.

        Args:
            network: Policy.
            reference: Network that the KL term refers to; None for no KL term.
            options: See GrpoOptions.
            dtype: Dtype of the matrix products; weights and losses stay float32.
        """
        self.network, self.options, self._dtype = network, options, dtype
        self._reference = reference if options.kl_coefficient > 0 else None
        self.optimizer = torch.optim.AdamW(
            network.parameters(), lr=options.learning_rate, betas=(0.9, 0.95), weight_decay=0.0
        )

    def train(self, groups: Sequence[ScoredGroup]) -> dict[str, float]:
        """Run one round of updates on fresh groups; return metrics averaged over action tokens."""
        size = math.ceil(len(groups) / self.options.updates_per_round)
        minibatches = [groups[start : start + size] for start in range(0, len(groups), size)]
        prepared = [self._prepared(part, is_first=number == 0) for number, part in enumerate(minibatches)]
        updates = [self._update(part, batch) for part, batch in zip(minibatches, prepared, strict=True)]
        return {key: sum(update[key] for update in updates) / len(updates) for key in updates[0]}

    @torch.no_grad()
    def _prepared(self, groups: Sequence[ScoredGroup], *, is_first: bool) -> list[_Micro]:
        """Return this rank's micro-batches, with log-probabilities before the round from the same code and shapes."""
        parts = local_shards(list(micro_batches(groups, self.options.tokens_per_batch)))
        return [_Micro(part, share, None if is_first else self._logprobs(self.network, part)) for part, share in parts]

    @torch.no_grad()
    def _reference_logprobs(self, groups: list[ScoredGroup]) -> Tensor | None:
        return None if self._reference is None else self._logprobs(self._reference, groups)

    def _logprobs(self, network: Any, groups: list[ScoredGroup]) -> Tensor:
        def compute() -> Tensor:
            return action_logprobs(weights_of(network, self._dtype), groups, self.options.temperature)

        return with_full_parameters(network, compute)

    def _warm_up(self) -> None:
        """Set the learning rate of the next update; the optimiser's own state counts earlier ones."""
        done = max((int(state["step"]) for state in self.optimizer.state.values()), default=0)
        share = min(1.0, (done + 1) / max(1, self.options.warmup_updates))
        for group in self.optimizer.param_groups:
            group["lr"] = share * self.options.learning_rate

    def _update(self, groups: Sequence[ScoredGroup], batch: list[_Micro]) -> dict[str, float]:
        """Take one optimiser step; the sum over micro-batches does not depend on how they were cut."""
        num_tokens = sum(group.num_actions for group in groups)
        totals: dict[str, float] = defaultdict(float, kl=0.0)
        for micro in batch:
            loss, sums = self._loss(micro)
            (loss * (micro.share / num_tokens)).backward()
            for key, value in {"loss": loss.item(), **sums}.items():
                totals[key] += micro.share * value
        self._warm_up()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.options.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {key: value / num_tokens for key, value in all_reduce_sum(totals).items()} | {
            "grad_norm": full_tensor(norm).item()
        }

    def _loss(self, micro: _Micro) -> tuple[Tensor, dict[str, float]]:
        reference = self._reference_logprobs(micro.groups)
        logprobs = self._logprobs(self.network, micro.groups)
        old = logprobs.detach() if micro.old_logprobs_N is None else micro.old_logprobs_N
        advantages, sampled = (of(micro.groups).to(logprobs.device) for of in (token_advantages, sampled_logprobs))
        importance, mismatch = importance_weights(old, sampled, stream_lengths(micro.groups), self.options)
        loss, sums = objective(logprobs, old, reference, advantages, self.options, importance)
        return loss, sums | mismatch
