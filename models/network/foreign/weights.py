"""Hidden states and logits of a network of any architecture, by transformers' own forward pass.

Each stream is one row of a padded batch. Padding is on the right, where no token sees it, so rows need no mask and cannot
see each other. Dropout is off, as in our own forward pass.

Shapes: R rows, T tokens of the longest, N tokens of all rows, E hidden size, V vocabulary.
"""

import inspect
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from models.network.lora import has_adapters, merged
from schemas.errors import InputError

Row = Sequence[int]

_MOST_PADDED = 1.25
"""Maximum size of a batch relative to its tokens; rows of other lengths are computed in another batch."""
_MOVING = ("dynamic", "longrope")
"""Ways of scaling positions by the longest row of a batch."""


@dataclass(frozen=True, slots=True)
class ForeignWeights:
    """Network that transformers computes; gradients flow into its own parameters."""

    network: Any
    head_network: Any
    """The network without its body; see `head_of`."""
    dtype: torch.dtype
    max_length: int | None
    """Number of tokens from which on a row would depend on others of its batch; None: it never does."""

    @property
    def device(self) -> torch.device:
        """Device of all computation."""
        return self.network.device

    @property
    def head(self) -> Tensor:
        """Output embedding, [V, E]."""
        return self.network.get_output_embeddings().weight

    @property
    def has_cache(self) -> bool:
        """Whether the body takes keys and values of earlier tokens."""
        return "past_key_values" in self._arguments

    @property
    def _arguments(self) -> Sequence[str]:
        return list(inspect.signature(self.network.base_model.forward).parameters)

    def body(self, ids_RT: Tensor, positions_RT: Tensor | None = None, **options: Any) -> Any:
        """Return the output of the body of the network, whose `last_hidden_state` is [R, T, E].

        Args:
            ids_RT: Token ids.
            positions_RT: Positions of the tokens; None: each row begins at 0. Dropped where the body finds them itself.
            options: Further arguments of the body: attention_mask, past_key_values, use_cache.

        Raises:
            InputError: a row is so long that it would depend on the other rows.
        """
        if self.max_length is not None:
            self._require_length(ids_RT.shape[1] if positions_RT is None else int(positions_RT.max()) + 1)
        if positions_RT is not None and "position_ids" in self._arguments:
            options["position_ids"] = positions_RT
        kind = self.device.type
        with torch.autocast("cpu" if kind == "meta" else kind, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            return self.network.base_model(input_ids=ids_RT, **options)

    def _require_length(self, length: int) -> None:
        if self.max_length is not None and length > self.max_length:
            raise InputError(
                f"a stream has {length:,} tokens, and {self.network.config.model_type!r} scales positions by the longest of a "
                f"batch from {self.max_length:,} tokens on, so that streams would depend on each other: use shorter prompts"
            )

    def logits(self, hidden_NE: Tensor) -> Tensor:
        """Return logits [N, V] in float32, whatever the dtype of the body."""
        hidden = hidden_NE.to(self.head.dtype)[None]
        return self.head_network(inputs_embeds=hidden, use_cache=False).logits[0].float()


def foreign_weights_of(network: Any, dtype: torch.dtype, *, for_sampling: bool = False) -> ForeignWeights:
    """Return a network of any architecture, ready to be computed by transformers.

    Args:
        network: Causal LM, with or without low-rank adapters. Its modules are switched to evaluation, and its blocks to
            recomputing activations where it is so configured.
        dtype: Dtype of the matrix products of the body; the head computes in float32.
        for_sampling: Merge adapters into the weights, and hold those of linear maps in this dtype.
    """
    from models.network.foreign.head import head_of

    if for_sampling:
        network = _for_sampling(network, dtype)
    _set_mode(network, recomputes=network.is_gradient_checkpointing and not for_sampling)
    return ForeignWeights(network, head_of(network), dtype, _max_length(network.config.get_text_config()))


def _for_sampling(network: Any, dtype: torch.dtype) -> Any:
    """Return a network with merged adapters and narrow linear maps; itself, if there is nothing to change."""
    plain = merged(network) if has_adapters(network) else network
    if dtype != torch.bfloat16:
        return plain
    plain = deepcopy(plain) if plain is network else plain
    for module in plain.base_model.modules():
        if isinstance(module, nn.Linear):
            module.to(dtype)
    return plain


def _set_mode(network: Any, *, recomputes: bool) -> None:
    """Switch dropout off, and recomputation on or off: transformers ties it to the training mode of each block.

    Padding is a token like others, as in our own forward pass: its embedding is trained where a stream holds it.
    """
    from transformers.modeling_layers import GradientCheckpointingLayer

    network.eval()
    network.get_input_embeddings().padding_idx = None
    for block in network.modules():
        if isinstance(block, GradientCheckpointingLayer):
            block.training = recomputes
            vars(block).update(
                {name: 0.0 for name in vars(block) if "dropout" in name and isinstance(vars(block)[name], float)}
            )


def _max_length(config: Any) -> int | None:
    """Return the number of tokens up to which positions are not scaled by the longest row; None: they never are."""
    scaling = getattr(config, "rope_parameters", None) or {}
    kinds = [one for one in (scaling, *scaling.values()) if isinstance(one, dict)]
    if not any(one.get("rope_type") in _MOVING for one in kinds):
        return None
    unscaled = [one.get("original_max_position_embeddings") for one in kinds]
    named = [*unscaled, getattr(config, "original_max_position_embeddings", None), config.max_position_embeddings]
    return min(filter(None, named))


def forward_groups(weights: ForeignWeights, prefixes: Sequence[Row], suffixes: Sequence[Sequence[Row]]) -> Tensor:
    """Return hidden states of groups of rows, as `packed.forward_groups` does, without filler.

    Differs: a common prefix is computed once per row, because only a cache would share it.
    """
    suffixes = suffixes or [[] for _ in prefixes]
    wholes = [[[*prefix, *one] for one in group] or [prefix] for prefix, group in zip(prefixes, suffixes, strict=True)]
    hidden = iter(hidden_of_rows(weights, list(chain(*wholes))))
    by_group = [[next(hidden) for _ in group] for group in wholes]
    first = [group[0][: len(prefix)] for prefix, group in zip(prefixes, by_group, strict=True)]
    then = [
        one[len(prefix) :]
        for prefix, group in zip(prefixes, by_group, strict=True)
        for one in group
        if len(one) > len(prefix)
    ]
    return torch.cat([*first, *then])


def hidden_of_rows(weights: ForeignWeights, rows: Sequence[Row]) -> list[Tensor]:
    """Return the hidden states of each row, [T, E], in order; each is computed as if it were alone."""
    found: dict[int, Tensor] = {}
    for batch in _batches(rows):
        longest = len(rows[batch[-1]])
        ids_RT = torch.tensor([[*rows[row], *[0] * (longest - len(rows[row]))] for row in batch], device=weights.device)
        hidden_RTE = weights.body(ids_RT, use_cache=False).last_hidden_state
        found |= {row: one[: len(rows[row])] for row, one in zip(batch, hidden_RTE, strict=True)}
    return [found[row] for row in range(len(rows))]


def _batches(rows: Sequence[Row]) -> Iterator[list[int]]:
    """Yield the numbers of rows of similar lengths, the longest last."""
    batch: list[int] = []
    num_tokens = 0
    for row in sorted(range(len(rows)), key=lambda row: len(rows[row])):
        length = len(rows[row])
        if batch and (len(batch) + 1) * length > _MOST_PADDED * (num_tokens + length):
            yield batch
            batch, num_tokens = [], 0
        batch.append(row)
        num_tokens += length
    yield batch
