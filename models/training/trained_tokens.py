"""Trained tokens of a micro-batch as tensors: those that the policy sampled, and those with a weight of their own.

Shapes: N action tokens, in the order of groups, streams and tokens; M trained tokens, which include them; H hidden size.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.methods.losses import Batch
from models.methods.ratios import k3
from models.methods.streams import TrainingGroup, TrainingStream
from models.training.own_network import OwnNetwork


class TrainedTokens:
    """Trained tokens of some groups."""

    def __init__(self, groups: Sequence[TrainingGroup], device: torch.device) -> None:
        """Gather what is known of the tokens before anything is computed."""
        self._groups, self._device = groups, device
        self._streams = [stream for group in groups for stream in group.streams]
        self._acting = [stream for stream in self._streams if stream.acts]
        self._has_marks = any(stream.ce_weights or stream.ref_kl_weights for stream in self._streams)

    def batch(
        self,
        logprobs_M: Tensor,
        old_logprobs_M: Tensor,
        reference_logprobs_M: Tensor | None,
        hidden_MH: Tensor,
        network: OwnNetwork | None,
    ) -> Batch:
        """Return the action tokens among the trained ones, for the loss."""
        episodes, lengths = self._episodes(), [stream.action_lengths for stream in self._acting]
        is_action_M = self._values(lambda stream: stream.tokens.is_action, bool) if self._has_marks else None

        def chosen(values_M: Tensor) -> Tensor:
            return values_M if is_action_M is None else values_M[is_action_M]

        return Batch(
            logprobs_N=chosen(logprobs_M),
            old_logprobs_N=chosen(old_logprobs_M),
            sampled_logprobs_N=chosen(self._values(lambda stream: stream.tokens.logprobs)),
            reference_logprobs_N=None if reference_logprobs_M is None else chosen(reference_logprobs_M),
            advantages_N=self._advantages(lengths),
            stream_lengths=[sum(one) for one in lengths],
            stream_episodes=episodes,
            turn_lengths=[*chain(*lengths)],
            turn_episodes=[*chain(*([number] * len(one) for number, one in zip(episodes, lengths, strict=True)))],
            hidden_NH=None if network is None else chosen(hidden_MH).float(),
            network=network.head if network else None,
        )

    def terms(self, logprobs_M: Tensor, reference_logprobs_M: Tensor | None) -> dict[str, Tensor]:
        """Return weighted cross-entropy and KL to the reference, summed, where tokens are marked for them."""
        terms: dict[str, Tensor] = {}
        if any(stream.ce_weights for stream in self._streams):
            terms["ce"] = -(self._values(lambda stream: stream.ce_weights) * logprobs_M).sum()
        if reference_logprobs_M is not None and any(stream.ref_kl_weights for stream in self._streams):
            weights_M = self._values(lambda stream: stream.ref_kl_weights)
            terms["ref_kl"] = (weights_M * k3(logprobs_M, reference_logprobs_M)).sum()
        return terms

    def _values(self, of: Callable[[TrainingStream], list[Any]], dtype: type = np.float32) -> Tensor:
        """Return a value of each trained token, [M]; 0 where a stream has none."""
        parts: list[np.ndarray] = []
        for stream in self._streams:
            is_trained = np.array(stream.is_trained)
            parts.append(np.array(of(stream) or np.zeros(len(is_trained)), dtype)[is_trained])
        return torch.from_numpy(np.concatenate(parts)).to(self._device)

    def _advantages(self, lengths: Sequence[list[int]]) -> Tensor:
        """Return the advantage of each action token, [N], given the number of tokens of each stream's actions."""
        of_actions = np.array([one for stream in self._acting for one in stream.advantages], np.float32)
        return torch.from_numpy(np.repeat(of_actions, [*chain(*lengths)])).to(self._device)

    def _episodes(self) -> list[int]:
        """Return the number of the episode of each stream with actions, counted through all groups."""
        numbers: dict[tuple[int, int], int] = {}
        keys = [
            (number, stream.episode)
            for number, group in enumerate(self._groups)
            for stream in group.streams
            if stream.acts
        ]
        return [numbers.setdefault(key, len(numbers)) for key in keys]


def num_marked(groups: Sequence[TrainingGroup]) -> dict[str, int]:
    """Return the number of tokens marked for cross-entropy and for the KL to the reference, in the whole update."""

    def count(weights: Sequence[list[float]]) -> int:
        return sum(weight != 0 for stream in weights for weight in stream)

    streams: list[TrainingStream] = [stream for group in groups for stream in group.streams]
    counts = {
        "ce": count([stream.ce_weights for stream in streams]),
        "ref_kl": count([stream.ref_kl_weights for stream in streams]),
    }
    return {name: max(1, number) for name, number in counts.items()}
