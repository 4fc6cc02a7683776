"""Rounds of updates of a policy on fresh groups, by the loss that the recipe names.

Shapes: N action tokens of all groups, in the order of groups, streams and tokens; M trained tokens likewise.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, chain
from operator import add
from typing import Any

import torch
from torch import Tensor, nn

from models.methods.losses import Batch, Loss
from models.methods.streams import TrainingGroup, micro_batches, num_units, pairs
from models.network.head import target_logprobs
from models.network.packed import forward_groups
from models.network.sharding import all_reduce_sum, full_tensor, local_shards, with_full_parameters
from models.network.transformer import Weights, weights_of
from models.training.trained_tokens import TrainedTokens, num_marked, own_network_of
from schemas.recipes.learning import RlRecipe


def trained_logprobs(weights: Weights, groups: Sequence[TrainingGroup], temperature: float) -> Tensor:
    """Return log-probabilities of all trained tokens, [M], in order; equal streams are computed once."""
    return logprobs_and_hidden(weights, groups, temperature)[0]


def logprobs_and_hidden(weights: Weights, groups: Sequence[TrainingGroup], temperature: float) -> tuple[Tensor, Tensor]:
    """Return log-probabilities of all trained tokens, [M], and the hidden states they are predicted from, [M, hidden]."""
    prefixes = [group.streams[0].tokens.ids[: group.prefix_length] for group in groups]
    suffixes = [[one.tokens.ids[group.prefix_length :] for one in group.distinct] for group in groups]
    hidden = forward_groups(weights, prefixes, suffixes)
    places, targets = _trained_places(groups).to(weights.device).unbind(1)
    chosen, twins = hidden[places], _computed_for(groups).to(weights.device)
    logprobs = target_logprobs(weights, chosen, targets, temperature)
    return logprobs.index_select(0, twins), chosen.index_select(0, twins)


def _trained_places(groups: Sequence[TrainingGroup]) -> Tensor:
    """Return the predicting hidden state's index (see `forward_groups`) and the id of each distinct trained token."""
    places: list[tuple[int, int]] = []
    prefix_end, next_place = 0, sum(group.prefix_length for group in groups)
    for group in groups:
        prefix_end += group.prefix_length
        for one in group.distinct:
            own, trained = one.tokens.ids[group.prefix_length :], one.is_trained[group.prefix_length :]
            before = [prefix_end - 1, *range(next_place, next_place + len(own) - 1)]
            places += [(place, token) for place, token, wanted in zip(before, own, trained, strict=True) if wanted]
            next_place += len(own)
    return torch.tensor(places)


def _computed_for(groups: Sequence[TrainingGroup]) -> Tensor:
    """Return the index of each trained token of all streams, [M], among those of distinct streams."""
    numbers: list[int] = []
    first = 0
    for group in groups:
        counts = [sum(one.is_trained) for one in group.distinct]
        starts = list(accumulate(counts, initial=first))
        numbers += chain(*(range(starts[twin], starts[twin + 1]) for twin in group.duplicate_of))
        first = starts[-1]
    return torch.tensor(numbers)


_METRICS = {"rl": "loss"}
"""Names of terms as metrics, where they differ."""


@dataclass(frozen=True, slots=True)
class _Micro:
    """Groups that are computed at once."""

    groups: list[TrainingGroup]
    share: float
    """Factor of the groups on this rank: 1, or 0 for a repeated micro-batch."""
    old_logprobs_M: Tensor | None
    """Log-probabilities under the policy at the start of the round; None: that policy is the one being trained."""


class PolicyTrainer:
    """Trainer that updates a policy in place from groups; several ranks share the micro-batches."""

    def __init__(
        self,
        network: Any,
        reference: Any | None,
        loss: Loss,
        options: RlRecipe,
        tokens_per_batch: int,
        dtype: torch.dtype,
    ) -> None:
        """Create a trainer with its own optimiser.

        Args:
            network: Policy.
            reference: Reference policy; None if the loss does not need it.
            loss: Loss to minimise.
            options: Number of updates, learning rate and its warm-up, and sampling temperature.
            tokens_per_batch: Maximum number of tokens computed at a time.
            dtype: Dtype of the matrix products; weights and losses stay float32.
        """
        self.network, self._loss, self.options, self._dtype = network, loss, options, dtype
        self._reference, self._tokens_per_batch = reference, tokens_per_batch
        self.own_network = own_network_of(loss, network)
        self.optimizer = torch.optim.AdamW(
            self._parameters(), lr=options.learning_rate, betas=(0.9, 0.95), weight_decay=0.0
        )

    def _parameters(self) -> list[nn.Parameter]:
        own = self.own_network.parameters() if self.own_network else ()
        return [*self.network.parameters(), *own]

    def train(self, groups: Sequence[TrainingGroup], draw: int = 0) -> dict[str, float]:
        """Run one round of updates on fresh groups.

        Args:
            groups: Groups of the round.
            draw: Number that decides which episodes a loss on pairs draws; of a round, for example.

        Returns:
            Metrics averaged over the units of the loss; none if there is nothing to train on.
        """
        whole = pairs(groups, draw) if self._loss.unit == "pair" else groups
        units = [marked for marked in map(self._loss.marked, whole) if marked.streams]
        if not units:
            return {}
        size = math.ceil(len(units) / self.options.updates_per_round)
        minibatches = [units[start : start + size] for start in range(0, len(units), size)]
        num_passes = self.options.passes_per_round
        used_once = num_passes == 1
        prepared = [self._prepared(part, is_first=used_once and number == 0) for number, part in enumerate(minibatches)]
        updates = [self._update(*one) for one in [*zip(minibatches, prepared, strict=True)] * num_passes]
        return {key: _mean_of_finite([update[key] for update in updates]) for key in updates[0]}

    @torch.no_grad()
    def _prepared(self, groups: Sequence[TrainingGroup], *, is_first: bool) -> list[_Micro]:
        """Return this rank's micro-batches, with log-probabilities before the round from the same code and shapes."""
        parts = local_shards(list(micro_batches(groups, self._tokens_per_batch)))
        return [
            _Micro(part, share, None if is_first else self._computed(self.network, part)[0]) for part, share in parts
        ]

    def _computed(self, network: Any, groups: list[TrainingGroup]) -> tuple[Tensor, Tensor]:
        def compute() -> tuple[Tensor, Tensor]:
            return logprobs_and_hidden(weights_of(network, self._dtype), groups, self.options.temperature)

        return with_full_parameters(network, compute)

    def _warm_up(self) -> None:
        """Set the learning rate of the next update; the optimiser's own state counts earlier ones."""
        done = max((int(state["step"]) for state in self.optimizer.state.values()), default=0)
        share = min(1.0, (done + 1) / max(1, self.options.warmup_updates))
        for group in self.optimizer.param_groups:
            group["lr"] = share * self.options.learning_rate

    def _update(self, groups: Sequence[TrainingGroup], batch: list[_Micro]) -> dict[str, float]:
        """Take one optimiser step; the sum over micro-batches does not depend on how they were cut."""
        counts = {"rl": num_units(groups, self._loss.unit), "entropy": num_units(groups, "token"), **num_marked(groups)}
        totals: dict[str, float] = defaultdict(float, kl=0.0)
        for micro in batch:
            terms, sums = self._terms(micro)
            reduce(add, (term * (micro.share / counts[name]) for name, term in terms.items())).backward()
            for key, value in ({name: term.item() for name, term in terms.items()} | sums).items():
                totals[key] += micro.share * value
        means = {key: value / counts.get(key, counts["rl"]) for key, value in all_reduce_sum(totals).items()}
        return {_METRICS.get(key, key): value for key, value in means.items()} | self._step()

    def _step(self) -> dict[str, float]:
        """Move the weights by their gradients, unless these are not finite."""
        self._warm_up()
        norm = full_tensor(nn.utils.clip_grad_norm_(self._parameters(), self.options.max_grad_norm)).item()
        is_finite = math.isfinite(norm)
        if is_finite:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {"grad_norm": norm, "nonfinite_updates": float(not is_finite)}

    def _terms(self, micro: _Micro) -> tuple[dict[str, Tensor], dict[str, float]]:
        """Return the summed terms of a micro-batch's loss by name, and sums to log."""
        reference_M = self._reference_logprobs(micro.groups)
        logprobs_M, hidden_MH = self._computed(self.network, micro.groups)
        old_M = logprobs_M.detach() if micro.old_logprobs_M is None else micro.old_logprobs_M
        tokens = TrainedTokens(micro.groups, logprobs_M.device)
        batch = tokens.batch(logprobs_M, old_M, reference_M, hidden_MH, self.own_network)
        rl, sums = self._own_loss(batch)
        terms = ({} if rl is None else {"rl": rl}) | tokens.terms(logprobs_M, reference_M)
        entropy = float(-batch.old_logprobs_N.sum())
        return terms or {"rl": logprobs_M.sum() * 0.0}, sums | {"entropy": entropy}

    def _own_loss(self, batch: Batch) -> tuple[Tensor | None, dict[str, float]]:
        if self.own_network is None:
            return self._loss.rl(batch)
        return with_full_parameters(self.own_network, self._loss.rl, batch)

    @torch.no_grad()
    def _reference_logprobs(self, groups: list[TrainingGroup]) -> Tensor | None:
        return None if self._reference is None else self._computed(self._reference, groups)[0]


def _mean_of_finite(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / max(1, len(finite))
