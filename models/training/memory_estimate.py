"""Estimate of a training's device memory: gradients are computed with tensors that have shapes but no values.

The numbers follow from the code that trains, not from a separate formula.

A network that transformers computes reads values on its way, so it gets torch's fake tensors of a CPU instead of meta ones.

Differs from a GPU: attention stores its scores here, but not in the fused kernel there, so the estimate is too high for
long streams: 30 GB for 8 streams of 4,096 tokens and 0.6 billion weights, which took 18 GB on an H100.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from models.methods.losses import Loss
from models.methods.streams import TrainingGroup, TrainingStream
from models.network.language_model import network_without_values
from models.network.trained_parameters import make_trainable
from models.network.transformer import is_foreign, weights_of
from models.training.peak_memory import PeakMemory
from models.training.sft import Example, sft_loss
from models.training.trained_logprobs import trained_logprobs
from schemas.errors import InputError
from schemas.recipes.networks import TrainingRecipe
from schemas.records import Tokens

_NOWHERE = torch.device("meta")
_STATES_OF_ADAM = 2
"""Number of values that the optimiser stores for each trained weight."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Peak memory of a stage, in bytes."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    """Activations and all other temporary memory; for sampling, the key-value cache."""

    @property
    def total(self) -> int:
        """Sum of all parts."""
        return self.weights + self.gradients + self.optimizer + self.activations

    def of_each(self, num_ranks: int) -> "Footprint":
        """Return the footprint of each rank, when ranks share weights, gradients and the optimiser's state."""
        weights, gradients, optimizer = (
            -(-part // num_ranks) for part in (self.weights, self.gradients, self.optimizer)
        )
        return Footprint(weights, gradients, optimizer, self.activations)


def of_fine_tuning(
    config: Any, training: TrainingRecipe, num_rows: int, prompt: int, target: int, dtype: torch.dtype
) -> Footprint:
    """Return the footprint of supervised fine-tuning.

    Args:
        config: Configuration of the network, as in transformers.
        training: Training settings, which select the trained weights.
        num_rows: Number of examples computed at a time.
        prompt: Number of prompt tokens of each example.
        target: Number of target tokens of each example.
        dtype: Dtype of the matrix products.
    """
    example = Example.of(([1] * prompt, False), ([1] * target, True))
    return _of(config, training, lambda network: sft_loss(network, [example] * num_rows, dtype))


def of_update(
    config: Any, training: TrainingRecipe, num_rows: int, prompt: int, action: int, dtype: torch.dtype, loss: Loss
) -> Footprint:
    """Return the footprint of a policy update on streams that share only their first token; sharing more takes less.

    Args:
        config: Configuration of the network, as in transformers.
        training: Training settings, which select the trained weights.
        num_rows: Number of streams computed at a time.
        prompt: Number of tokens of each stream before the action.
        action: Number of sampled tokens of each stream.
        dtype: Dtype of the matrix products.
        loss: Loss to minimise, whose own network counts too.
    """
    mask, zeros = [False] * prompt + [True] * action, [0.0] * (prompt + action)
    tokens = [Tokens([0, row, *[1] * (prompt + action - 2)], mask, zeros) for row in range(num_rows)]
    group = TrainingGroup([TrainingStream(one, [1.0]) for one in tokens])

    def computed(network: Any) -> Tensor:
        return trained_logprobs(weights_of(network, dtype), [group], temperature=1.0).sum()

    policy, head = _of(config, training, computed), loss.network(config.get_text_config().hidden_size)
    added = _num_bytes(head.parameters()) if head else 0
    copied = replace(policy, weights=policy.gradients)  # weights that are not trained are shared
    networks = [policy, Footprint(added, added, _STATES_OF_ADAM * added, 0), *[copied] * loss.copies_policy]
    return Footprint(*(sum(parts) for parts in zip(*map(astuple, networks), strict=True)))


def _of(config: Any, training: TrainingRecipe, loss: Callable[[Any], Tensor]) -> Footprint:
    """Return the footprint of computing gradients twice: the first ones coexist with the second's activations.

    Raises:
        InputError: transformers computes the network, and cannot without values.
    """
    network = _network(config, keeps_dtype=bool(training.lora_rank))
    make_trainable(network, training, seed=0)
    network.to(_NOWHERE)
    with _fake_tensors(network) if is_foreign(network) else nullcontext():
        peak = peak_of_gradients(network, loss)
    weights, trained = _num_bytes(network.parameters()), _num_bytes(p for p in network.parameters() if p.requires_grad)
    return Footprint(weights, trained, _STATES_OF_ADAM * trained, max(0, peak - weights - trained))


def peak_of_gradients(network: Any, loss: Callable[[Any], Tensor]) -> int:
    """Return the most bytes at once while the gradients of a loss are computed twice, weights included."""
    memory = PeakMemory(network.device)
    for tensor in chain(network.parameters(), network.buffers()):
        memory.count(tensor)
    with memory:
        for _ in range(2):
            loss(network).backward()
    return memory.most


@contextmanager
def _fake_tensors(network: Any) -> Iterator[None]:
    """Compute with fake tensors of a CPU, which a network on the meta device is given here.

    Raises:
        InputError: the network cannot compute without values, as mixtures of experts in float32.
    """
    given: dict[int, Tensor] = {}
    logging.getLogger(FakeTensorMode.__module__).setLevel(
        logging.CRITICAL
    )  # the error below says it, without a traceback
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            for module in network.modules():
                for named in (module._parameters, module._buffers):
                    for name, one in named.items():
                        named[name] = given.setdefault(id(one), _as_fake(one)) if one is not None else None
            yield
    except RuntimeError as error:
        kind = repr(network.config.model_type)
        raise InputError(f"transformers computes {kind}, and its memory cannot be estimated: {error}") from error


def _as_fake(tensor: Tensor) -> Tensor:
    """Return a tensor of the same form, on a CPU; within FakeTensorMode it takes no memory."""
    fake = torch.empty_like(tensor, device="cpu")
    return nn.Parameter(fake, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else fake


def of_sampling(config: Any, num_rows: int, length: int, dtype: torch.dtype) -> Footprint:
    """Return the footprint of the torch engine for this many streams of a length; dtype is of weights and cache.

    A layer without attention counts as one with it, which takes more.
    """
    weights, shape = num_weights(config) * dtype.itemsize, config.get_text_config()
    num_heads = getattr(shape, "num_attention_heads", 0)
    head_size = getattr(shape, "head_dim", None) or shape.hidden_size // max(1, num_heads)
    num_kept = getattr(shape, "num_key_value_heads", None) or num_heads
    per_token = 2 * shape.num_hidden_layers * num_kept * head_size * dtype.itemsize
    return Footprint(weights, 0, 0, num_rows * length * per_token)


def num_weights(config: Any) -> int:
    """Return the number of weights in a network."""
    return sum(weight.numel() for weight in _network(config, keeps_dtype=False).parameters())


def _network(config: Any, *, keeps_dtype: bool) -> Any:
    """Return a network without values: in bfloat16 if its base keeps the dtype that it is stored in, else in float32."""
    stored = getattr(config, "dtype", None)
    narrow = keeps_dtype and stored == torch.bfloat16
    return network_without_values(config).to(torch.bfloat16 if narrow else torch.float32)


def _num_bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)
