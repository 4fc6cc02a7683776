"""Supervised fine-tuning: next-token cross-entropy on the target tokens of examples (paper, Eq. 5).

Shapes: B examples, T tokens, V vocabulary.
"""

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from models.network.foreign.weights import ForeignWeights
from models.network.head import target_logprobs
from models.network.packed import forward
from models.network.precision import matmul_dtype
from models.network.sharding import all_reduce_sum, full_tensor, local_shards, num_ranks, rank, with_full_parameters
from models.network.transformer import Weights, weights_of
from models.training.checkpoints import Checkpoints
from schemas.errors import InputError, TrainingError


@dataclass(frozen=True, slots=True)
class Example:
    """Token ids, with a mask of those to be learnt."""

    ids: list[int]
    is_target: list[bool]
    limits: tuple[str, ...] = ()
    """Limits that its prompts met."""

    @staticmethod
    def of(*pieces: tuple[list[int], bool], limits: Iterable[str] = ()) -> "Example":
        """Create an example from pieces that are wholly target or wholly prompt."""
        ids = [token for piece, _ in pieces for token in piece]
        return Example(ids, [target for piece, target in pieces for _ in piece], tuple(limits))


@dataclass(frozen=True, slots=True)
class SftProgress:
    """Progress of the training after an update."""

    update: int
    num_updates: int
    loss: float
    num_tokens: int


def batches(examples: Sequence[Example], max_tokens: int, rng: random.Random) -> Iterator[list[Example]]:
    """Yield every example once, in batches of at most max_tokens, with lengths rounded up to multiples of 32.

    Examples of a batch have the same rounded length, so that little is padded where they attend.
    """
    buckets: dict[int, list[Example]] = defaultdict(list)
    for example in rng.sample(examples, len(examples)):
        buckets[padded_length(len(example.ids))].append(example)
    groups = [
        bucket[start : start + max(1, max_tokens // length)]
        for length, bucket in buckets.items()
        for start in range(0, len(bucket), max(1, max_tokens // length))
    ]
    yield from rng.sample(groups, len(groups))


def padded_length(length: int) -> int:
    """Round up to a multiple of 32."""
    return -(-length // 32) * 32


def sft_loss(network: nn.Module, batch: Sequence[Example], dtype: torch.dtype, relu_share: float = 0.0) -> Tensor:
    """Return the mean cross-entropy over the target tokens of a batch.

    The head and the end of the last block run on target positions only. Activations are stochastic if a share of them is
    ReLU.
    """
    weights = weights_of(network, dtype)
    if relu_share:
        weights = _with_relu(weights, relu_share)
    ids = np.concatenate([example.ids for example in batch])
    is_target = np.concatenate([[False, *example.is_target[1:]] for example in batch])
    places = is_target.nonzero()[0]
    before, targets = (torch.from_numpy(one).to(weights.device) for one in (places - 1, ids[places]))
    hidden = forward(weights, [example.ids for example in batch], before)
    return -target_logprobs(weights, hidden, targets).mean()


def _with_relu(weights: Weights | ForeignWeights, share: float) -> Weights:
    if isinstance(weights, ForeignWeights):
        raise InputError(
            f"stochastic activations are not for {weights.network.config.model_type!r}: use relu_share = 0"
        )
    return replace(weights, relu_share=share)


def learning_rate(update: int, num_updates: int, peak: float, warmup: float = 0.05) -> float:
    """Return the learning rate: linear warm-up over a share of the updates, then cosine to a tenth of the peak."""
    num_warmup = max(1, round(warmup * num_updates))
    if update < num_warmup:
        return peak * (update + 1) / num_warmup
    position = (update - num_warmup) / max(1, num_updates - num_warmup)
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * position)))


def fit(
    network: nn.Module,
    stream: Iterator[list[Example]],
    num_updates: int,
    peak_learning_rate: float,
    on_update: Callable[[SftProgress], None] = lambda progress: None,
    checkpoints: Checkpoints | None = None,
    max_tokens: int = 16_000,
    relu_share: float = 0.0,
    seed: int = 0,
) -> None:
    """Train in place with AdamW and clipped gradients; matrix products in the device's precision, weights in float32.

    Args:
        network: Network on one rank, or sharded over several, which share the examples of every batch.
        stream: Batches, the same every time it is started.
        num_updates: Number of batches to learn from.
        peak_learning_rate: See learning_rate.
        on_update: Called after each update.
        checkpoints: Checkpoints to resume from and to write; None trains without them.
        max_tokens: Maximum number of tokens that one rank computes at a time.
        relu_share: Share of negative inputs of the activation that are set to 0, drawn anew in each update.
        seed: Seed of these draws.

    Raises:
        TrainingError: a loss or a gradient is not finite; the network is as before that update.
    """
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.01)
    dtype = matmul_dtype(next(network.parameters()).device)
    num_done = checkpoints.resume(network, optimizer) if checkpoints else 0
    network.train()
    for update, batch in enumerate(itertools.islice(stream, num_done, num_updates), num_done):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(update, num_updates, peak_learning_rate)
        if relu_share:  # a resumed training draws as one that was not interrupted
            torch.manual_seed(seed + update * num_ranks() + rank())
        loss = backward(network, batch, dtype, max_tokens, relu_share)
        norm = full_tensor(nn.utils.clip_grad_norm_(network.parameters(), 1.0)).item()
        _require_finite(loss, norm, update, num_updates, peak_learning_rate)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        on_update(SftProgress(update + 1, num_updates, loss, sum(len(e.ids) for e in batch)))
        if checkpoints:
            checkpoints.keep(network, optimizer, update + 1)
    network.eval()


def _require_finite(loss: float, norm: float, update: int, num_updates: int, peak: float) -> None:
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise TrainingError(
            f"update {update + 1} of {num_updates} of a fine-tuning has loss {loss} and gradient norm {norm}, at a learning rate "
            f"of up to {peak:g}: lower sft.learning_rate of its section. Nothing of this stage is kept"
        )


def backward(
    network: nn.Module, batch: Sequence[Example], dtype: torch.dtype, max_tokens: int, relu_share: float = 0.0
) -> float:
    """Add the gradients of a batch's mean loss, which ranks share; return the loss.

    Args:
        network: Network on one rank, or sharded over several.
        batch: Examples of similar length.
        dtype: Dtype of the matrix products.
        max_tokens: Maximum number of padded tokens that one rank computes at a time; the sum does not depend on it.
        relu_share: Share of negative inputs of the activation that are set to 0; then the sum depends on how it is cut.
    """
    size = min(math.ceil(len(batch) / num_ranks()), max(1, max_tokens // _length(batch)))
    parts = [batch[start : start + size] for start in range(0, len(batch), size)]
    total, num_targets = 0.0, _num_targets(batch)
    for part, counts in local_shards(parts):
        loss = with_full_parameters(network, partial(sft_loss, network, part, dtype, relu_share)) * (
            counts * _num_targets(part) / num_targets
        )
        loss.backward()
        total += loss.item()
    return all_reduce_sum({"loss": total})["loss"]


def _length(batch: Sequence[Example]) -> int:
    return padded_length(max(len(example.ids) for example in batch))


def _num_targets(examples: Sequence[Example]) -> int:
    return sum(sum(example.is_target[1:]) for example in examples)


def repeated(examples: Sequence[Example], max_tokens: int, seed: int) -> Iterator[list[Example]]:
    """Yield batches without end: one pass after another, each shuffled anew."""
    rng = random.Random(seed)
    while True:
        yield from batches(examples, max_tokens, rng)
