"""Rounds of updates of a policy on fresh groups, by the loss that the recipe names.

Shapes: N action tokens of all groups, in the order of groups, streams and tokens; M trained tokens likewise.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor, nn

from models.methods.losses import Batch, Loss
from models.methods.streams import TrainingGroup, micro_batches, num_units, pairs
from models.network.sharding import (
    all_reduce_sum,
    full_tensor,
    local_shards,
    names_on_all_ranks,
    with_full_parameters,
)
from models.network.transformer import weights_of
from models.training.adapted_reference import AdaptedReference
from models.training.own_network import own_network_of
from models.training.trained_logprobs import logprobs_and_hidden
from models.training.trained_tokens import TrainedTokens, num_marked
from schemas.recipes.learning import RlRecipe

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
    kept_NK: Tensor | None = None
    """Values that the loss keeps from the start of the round."""

    @property
    def acts(self) -> bool:
        """Whether the loss has actions to work on."""
        return any(group.acts for group in self.groups)


class PolicyTrainer:
    """Trainer that updates a policy in place from groups; several ranks share the micro-batches."""

    def __init__(
        self,
        network: Any,
        reference: Any | AdaptedReference | None,
        loss: Loss,
        options: RlRecipe,
        tokens_per_batch: int,
        dtype: torch.dtype,
    ) -> None:
        """Create a trainer with its own optimiser.

        Args:
            network: Policy.
            reference: Reference policy, a network or other adapters of the policy; None if the loss does not need it.
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
        own = self.own_network.trained().values() if self.own_network else ()
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
        marked = (self._loss.marked(group) if group.acts else group for group in whole)
        units = [group for group in marked if group.streams]
        if not units:
            return {}
        size = math.ceil(len(units) / self.options.updates_per_round)
        minibatches = [units[start : start + size] for start in range(0, len(units), size)]
        num_passes = self.options.passes_per_round
        used_once = num_passes == 1
        prepared = [self._prepared(part, is_first=used_once and number == 0) for number, part in enumerate(minibatches)]
        updates = [self._update(*one) for one in [*zip(minibatches, prepared, strict=True)] * num_passes]
        names = dict.fromkeys(name for update in updates for name in update)
        return {name: _mean_of_finite([update[name] for update in updates if name in update]) for name in names}

    @torch.no_grad()
    def _prepared(self, groups: Sequence[TrainingGroup], *, is_first: bool) -> list[_Micro]:
        """Return this rank's micro-batches, with log-probabilities before the round from the same code and shapes."""
        parts = list(local_shards(list(micro_batches(groups, self._tokens_per_batch))))
        if is_first and not self._loss.prepares:
            return [_Micro(part, share, None) for part, share in parts]
        computed = [self._for_loss(part) for part, _ in parts]
        micros = [_Micro(*part, logprobs_M) for part, (logprobs_M, _) in zip(parts, computed, strict=True)]
        if not self._loss.prepares:
            return micros
        batches = [
            self._batch(micro, TrainedTokens(micro.groups, logprobs_M.device), logprobs_M, None, hidden_MH)
            for micro, (logprobs_M, hidden_MH) in zip(micros, computed, strict=True)
        ]
        shares = [micro.share for micro in micros if micro.acts]
        acting = [batch for micro, batch in zip(micros, batches, strict=True) if micro.acts]
        kept = iter(self._with_own_network(self._loss.prepare, acting, shares))
        return [replace(micro, kept_NK=next(kept) if micro.acts else None) for micro in micros]

    def _batch(
        self,
        micro: _Micro,
        tokens: TrainedTokens,
        logprobs_M: Tensor,
        reference_M: Tensor | None,
        hidden_MH: Tensor,
    ) -> Batch:
        old_M = logprobs_M.detach() if micro.old_logprobs_M is None else micro.old_logprobs_M
        batch = tokens.batch(logprobs_M, old_M, reference_M, hidden_MH, self.own_network)
        return replace(batch, num_updates=self._num_updates, kept_NK=micro.kept_NK)

    def _for_loss(self, groups: list[TrainingGroup]) -> tuple[Tensor, Tensor]:
        """Return log-probabilities under the policy, and the hidden states that the loss's own network reads."""
        logprobs_M, hidden_MH = self._computed(self.network, groups)
        backbone = self.own_network.backbone if self.own_network else None
        reads_policy = backbone is None or not any(group.acts for group in groups)
        return logprobs_M, hidden_MH if reads_policy else self._computed(backbone, groups)[1]

    def _computed(self, network: Any, groups: list[TrainingGroup]) -> tuple[Tensor, Tensor]:
        def compute() -> tuple[Tensor, Tensor]:
            return logprobs_and_hidden(weights_of(network, self._dtype), groups, self.options.temperature)

        return with_full_parameters(network, compute)

    @property
    def _num_updates(self) -> int:
        """Number of updates since the optimiser was new."""
        return max((int(state["step"]) for state in self.optimizer.state.values()), default=0)

    def _warm_up(self) -> None:
        """Set the learning rate of the next update; the optimiser's own state counts earlier ones."""
        share = min(1.0, (self._num_updates + 1) / max(1, self.options.warmup_updates))
        for group in self.optimizer.param_groups:
            group["lr"] = share * self.options.learning_rate

    def _update(self, groups: Sequence[TrainingGroup], batch: list[_Micro]) -> dict[str, float]:
        """Take one optimiser step; the sum over micro-batches does not depend on how they were cut.

        An update of auxiliary groups alone has no metrics of sampled tokens.
        """
        counts = {"rl": num_units(groups, self._loss.unit), "entropy": num_units(groups, "token"), **num_marked(groups)}
        totals: dict[str, float] = defaultdict(float, kl=0.0)
        for micro in batch:
            terms, sums = self._terms(micro)
            reduce(add, (term * (micro.share / max(1, counts[name])) for name, term in terms.items())).backward()
            for key, value in ({name: term.item() for name, term in terms.items()} | sums).items():
                totals[key] += micro.share * value
        on_all = {name: totals[name] for name in names_on_all_ranks(totals)}  # a rank without actions has fewer
        summed = all_reduce_sum(on_all).items()
        means = {key: value / number for key, value in summed if (number := counts.get(key, counts["rl"]))}
        return {_METRICS.get(key, key): value for key, value in means.items()} | self._step()

    def _step(self) -> dict[str, float]:
        """Move the weights by their gradients, unless these are not finite."""
        self._warm_up()
        norm, *others = [
            full_tensor(nn.utils.clip_grad_norm_(part, self.options.max_grad_norm)).item()
            for part in self._clipped_apart()
        ]
        is_finite = all(map(math.isfinite, [norm, *others]))
        if is_finite:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {"grad_norm": norm, "nonfinite_updates": float(not is_finite)}

    def _clipped_apart(self) -> list[list[nn.Parameter]]:
        """Return the weights whose gradients are scaled together: those of a copied critic scale none of the policy's."""
        if self.own_network and self.own_network.backbone:
            return [[*self.network.parameters()], [*self.own_network.trained().values()]]
        return [self._parameters()]

    def _terms(self, micro: _Micro) -> tuple[dict[str, Tensor], dict[str, float]]:
        """Return the summed terms of a micro-batch's loss by name, and sums to log."""
        reference_M = self._reference_logprobs(micro.groups)
        logprobs_M, hidden_MH = self._for_loss(micro.groups)
        tokens = TrainedTokens(micro.groups, logprobs_M.device)
        batch = self._batch(micro, tokens, logprobs_M, reference_M, hidden_MH)
        rl, sums = self._with_own_network(self._loss.rl, batch) if micro.acts else (None, {})
        terms = ({} if rl is None else {"rl": rl}) | tokens.terms(logprobs_M, reference_M)
        entropy = float(-batch.old_logprobs_N.sum())
        return terms or {"rl": logprobs_M.sum() * 0.0}, sums | {"entropy": entropy}

    def _with_own_network(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Return a function's result, computed while the weights of the loss's own network are gathered."""
        own = self.own_network
        return with_full_parameters(own.head, function, *inputs) if own else function(*inputs)

    @torch.no_grad()
    def _reference_logprobs(self, groups: list[TrainingGroup]) -> Tensor | None:
        if self._reference is None:
            return None
        if not isinstance(self._reference, AdaptedReference):
            return self._computed(self._reference, groups)[0]
        with self._reference.in_place() as network:
            return self._computed(network, groups)[0]


def _mean_of_finite(values: Sequence[float]) -> float:
    """Return the mean of the finite values; NaN, not a perfect 0, where there is none."""
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else math.nan
