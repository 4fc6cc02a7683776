"""Log-probabilities of the trained tokens of some groups, and the hidden states that predict them.

Shapes: M trained tokens of all groups, in the order of groups, streams and tokens.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.methods.ratios import k3
from models.methods.streams import TrainingGroup, micro_batches
from models.network.foreign.weights import ForeignWeights
from models.network.head import target_logprobs
from models.network.packed import forward_groups
from models.network.precision import matmul_dtype
from models.network.transformer import Weights, weights_of


def trained_logprobs(weights: Weights | ForeignWeights, groups: Sequence[TrainingGroup], temperature: float) -> Tensor:
    """Return log-probabilities of all trained tokens, [M], in order; equal streams are computed once."""
    return logprobs_and_hidden(weights, groups, temperature)[0]


@torch.no_grad()
def logprobs_by_group(
    network: Any, groups: Sequence[TrainingGroup], temperature: float, tokens_per_batch: int
) -> list[tuple[TrainingGroup, list[float]]]:
    """Return each group with the log-probabilities of its sampled tokens, in any order, under weights that stay as they are.

    Args:
        network: Network to compute with.
        groups: Groups of streams.
        temperature: Temperature of sampling.
        tokens_per_batch: Maximum number of tokens computed at a time.
    """
    found: list[tuple[TrainingGroup, list[float]]] = []
    weights = weights_of(network, matmul_dtype(network.device))
    for batch in micro_batches(groups, tokens_per_batch):
        logprobs = trained_logprobs(weights, batch, temperature).split([one.num_actions for one in batch])
        found += zip(batch, (part.tolist() for part in logprobs), strict=True)
    return found


def divergence(network: Any, groups: Sequence[TrainingGroup], temperature: float, tokens_per_batch: int) -> float:
    """Return the KL divergence per token from the policy that sampled these groups to a network.

    It is estimated on the sampled tokens as r - 1 - log r, where r is the ratio of the new to the old probability:
    Schulman's k3 (joschu.net/blog/kl-approx.html).

    Args:
        network: Network to compare.
        groups: Groups of streams, with the log-probabilities that they were sampled with.
        temperature: Temperature of sampling.
        tokens_per_batch: Maximum number of tokens computed at a time.
    """
    total, count = 0.0, 0
    for group, logprobs in logprobs_by_group(network, groups, temperature, tokens_per_batch):
        sampled = [
            old
            for stream in group.streams
            for old, acts in zip(stream.tokens.logprobs, stream.tokens.is_action, strict=True)
            if acts
        ]
        sampled_M, new_M = torch.tensor([sampled, logprobs], dtype=torch.float64)
        total += float(k3(sampled_M, new_M).sum())
        count += len(sampled)
    return total / max(1, count)


def logprobs_and_hidden(
    weights: Weights | ForeignWeights, groups: Sequence[TrainingGroup], temperature: float
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities of all trained tokens, [M], and the hidden states they are predicted from, [M, hidden]."""
    prefixes = [group.streams[0].tokens.ids[: group.prefix_length] for group in groups]
    suffixes = [[one.tokens.ids[group.prefix_length :] for one in group.distinct] for group in groups]
    places, targets = _trained_places(groups).to(weights.device).unbind(1)
    hidden = forward_groups(weights, prefixes, suffixes, places)
    logprobs = target_logprobs(weights, hidden, targets, temperature)
    twins = _computed_for(groups).to(weights.device)
    return logprobs.index_select(0, twins), hidden.index_select(0, twins)


def _trained_places(groups: Sequence[TrainingGroup]) -> Tensor:
    """Return the predicting hidden state's index (see `forward_groups`) and the id of each distinct trained token."""
    parts: list[np.ndarray] = []
    prefix_end, next_place = 0, sum(group.prefix_length for group in groups)
    for group in groups:
        prefix_end += group.prefix_length
        for one in group.distinct:
            ids = np.array(one.tokens.ids[group.prefix_length :])
            before = np.arange(next_place - 1, next_place - 1 + len(ids))
            before[0] = prefix_end - 1
            is_trained = np.array(one.is_trained[group.prefix_length :])
            parts.append(np.stack([before, ids], axis=1)[is_trained])
            next_place += len(ids)
    return torch.from_numpy(np.concatenate(parts))


def _computed_for(groups: Sequence[TrainingGroup]) -> Tensor:
    """Return the index of each trained token of all streams, [M], among those of distinct streams."""
    parts: list[Tensor] = []
    first = 0
    for group in groups:
        counts = [sum(one.is_trained) for one in group.distinct]
        starts = list(accumulate(counts, initial=first))
        parts += [torch.arange(starts[twin], starts[twin + 1]) for twin in group.duplicate_of]
        first = starts[-1]
    return torch.cat(parts)
