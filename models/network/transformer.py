"""A lean forward pass over the weights of a Llama-family network (Llama, Qwen2, Qwen3).

Hugging Face holds, loads and saves the weights; this file only computes with them, with fused projections,
half the element-wise work, and a cache of our own. Training and generation share it.

Shapes: B rows, T new tokens, S cached tokens, H query heads, K key-value heads, D head size, E hidden size.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from models.network.foreign.weights import ForeignWeights, foreign_weights_of
from models.network.lora import adapter_of
from models.network.sharding import with_full_parameters

_OWN = ("llama", "qwen2", "qwen3")
"""Architectures that this file computes; transformers computes all others."""
_QUERIES_AT_A_TIME = 128
"""Queries of a row that a CPU attends for together: their scores fit its caches, and keys after them are left out."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Fused linear maps of one input, with the low-rank adapters that add to them."""

    weight: Tensor
    bias: Tensor | None
    adapter: tuple[Tensor, Tensor] | None
    """Down matrix and scaled up matrix of the adapters."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return the outputs of the maps, one after the other on the last axis."""
        out = F.linear(x, self.weight, self.bias)
        if self.adapter is None:
            return out
        down, up = self.adapter
        return out + F.linear(F.linear(x, down), up)


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one block, with fused projections."""

    norm_in_E: Tensor
    qkv: Projection
    qk_norm_HD: Tensor | None
    """One row per query head, then one per key head, [H + K, 1, D]."""
    out: Projection
    norm_mlp_E: Tensor
    gate_up: Projection
    down: Projection


Block = Callable[..., Any]
"""One block of a network: `block(compute, *inputs)` returns `compute(layer, *inputs)` for its Layer."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Network laid out for computation; gradients flow back into the network's own parameters."""

    embedding: Tensor
    blocks: list[Block]
    norm_E: Tensor
    head: Tensor
    num_heads: int
    num_kv_heads: int
    head_size: int
    epsilon: float
    inverse_frequencies: Tensor
    dtype: torch.dtype
    relu_share: float = 0.0
    """Share of negative inputs of the MLPs' activation that it sets to 0, drawn at random in training; see `activation`."""

    @property
    def device(self) -> torch.device:
        """Device of all computation."""
        return self.embedding.device


def weights_of(network: Any, dtype: torch.dtype, *, for_sampling: bool = False) -> Weights | ForeignWeights:
    """Return a network's weights, which are fused and cast block by block, or the network itself if it is a foreign one.

    Args:
        network: Causal LM, with or without low-rank adapters.
        dtype: Dtype of the matrix products.
        for_sampling: Lay out every block at once, with its adapters added to its weights, for weights that are used
            often and never trained. Otherwise a block is laid out when it computes, and again in its backward pass if
            its activations are recomputed.
    """
    if is_foreign(network):
        return foreign_weights_of(network, dtype, for_sampling=for_sampling)
    config = network.config
    return Weights(
        embedding=network.model.embed_tokens.weight,
        blocks=[
            (_eager_block if for_sampling else _lazy_block)(block, network, dtype) for block in network.model.layers
        ],
        norm_E=network.model.norm.weight,
        head=_head(network, dtype, for_sampling=for_sampling),
        num_heads=config.num_attention_heads,
        num_kv_heads=config.num_key_value_heads,
        head_size=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        epsilon=config.rms_norm_eps,
        inverse_frequencies=network.model.rotary_emb.inv_freq,
        dtype=dtype,
    )


def is_foreign(network: Any) -> bool:
    """Return whether transformers computes a network, because this file does not.

    It is of another architecture, its positions are scaled by more than fixed factors, it has a sliding window, or biases
    after attention or in its MLP.
    """
    config = network.config
    if config.model_type not in _OWN:
        return True
    rotary = network.model.rotary_emb
    is_scaled = rotary.rope_type in ("dynamic", "longrope") or rotary.attention_scaling != 1
    has_biases = _plain(network.model.layers[0].self_attn.o_proj).bias is not None or getattr(config, "mlp_bias", False)
    return bool(is_scaled or has_biases or getattr(config, "sliding_window", None))


def _head(network: Any, dtype: torch.dtype, *, for_sampling: bool) -> Tensor:
    """Return the head: on a GPU in the dtype of the other products if it is for sampling, since float32 is slow there."""
    head = network.lm_head.weight
    if head.is_cuda:
        return head.to(dtype) if for_sampling else head
    return head.float()


def _eager_block(block: Any, _: Any, dtype: torch.dtype) -> Block:
    layer = _layer(block, dtype, merge_adapters=True)
    return lambda compute, *inputs: compute(layer, *inputs)


def _lazy_block(block: Any, network: Any, dtype: torch.dtype) -> Block:
    """Return a block that is trained: activations are stored for the backward pass, or recomputed if so configured."""

    def with_views(compute: Callable[..., Any], *inputs: Any) -> Any:
        return compute(_layer(block, dtype, merge_adapters=False), *inputs)

    def run(compute: Callable[..., Any], *inputs: Any) -> Any:
        if network.is_gradient_checkpointing and torch.is_grad_enabled():
            return checkpoint(with_views, compute, *inputs, use_reentrant=False)
        return with_views(compute, *inputs)

    return partial(with_full_parameters, block, run)


def _layer(block: Any, dtype: torch.dtype, merge_adapters: bool) -> Layer:
    attention, mlp = block.self_attn, block.mlp

    def fused(*linears: Any) -> Projection:
        return _fused(linears, dtype, merge_adapters)

    return Layer(
        norm_in_E=block.input_layernorm.weight,
        qkv=fused(attention.q_proj, attention.k_proj, attention.v_proj),
        qk_norm_HD=_head_norms(attention).to(dtype) if hasattr(attention, "q_norm") else None,
        out=fused(attention.o_proj),
        norm_mlp_E=block.post_attention_layernorm.weight,
        gate_up=fused(mlp.gate_proj, mlp.up_proj),
        down=fused(mlp.down_proj),
    )


def _fused(linears: Sequence[Any], dtype: torch.dtype, merge_adapters: bool) -> Projection:
    plain = [_plain(one) for one in linears]
    weight = torch.cat([one.weight for one in plain])
    bias = torch.cat([one.bias for one in plain]).to(dtype) if plain[0].bias is not None else None
    if not hasattr(linears[0], "lora_A"):
        return Projection(weight.to(dtype), bias, None)
    down, up = adapter_of(linears)
    if merge_adapters:
        return Projection((weight + up @ down).to(dtype), bias, None)
    return Projection(weight.to(dtype), bias, (down.to(dtype), up.to(dtype)))


def _plain(linear: Any) -> Any:
    """Return a linear map without its adapter, if it has one."""
    return getattr(linear, "base_layer", linear)


def _head_norms(attention: Any) -> Tensor:
    size = attention.head_dim
    heads = [
        norm.weight.expand(_plain(projection).weight.shape[0] // size, 1, size)
        for norm, projection in ((attention.q_norm, attention.q_proj), (attention.k_norm, attention.k_proj))
    ]
    return torch.cat(heads)


def finished_by_block(weights: Weights, wanted: Tensor | None) -> list[Tensor | None]:
    """Return the tokens that each block must finish: None, all of them, but in the last block those wanted afterwards."""
    return [*[None] * (len(weights.blocks) - 1), wanted]


def rotations(weights: Weights, positions_BT: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of the rotary embedding, [B, 1, T, D]."""
    angles = positions_BT[:, None, :, None].float() * weights.inverse_frequencies
    cos, sin = angles.cos().to(weights.dtype), angles.sin().to(weights.dtype)
    return torch.cat([cos, cos], dim=-1), torch.cat([sin, sin], dim=-1)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * sin


def norm(x: Tensor, weight: Tensor, epsilon: float, dtype: torch.dtype) -> Tensor:
    """Apply RMSNorm over the last axis, computed in the input's precision."""
    return F.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), epsilon).to(dtype)


def project(weights: Weights, layer: Layer, x_BTE: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries [B, H, T, D] and keys [B, K, T, D] of one block, both rotated, and values [B, K, T, D]."""
    hidden = norm(x_BTE, layer.norm_in_E, weights.epsilon, weights.dtype)
    fused = layer.qkv(hidden).unflatten(-1, (-1, weights.head_size)).transpose(1, 2)
    spun, value = fused.split([weights.num_heads + weights.num_kv_heads, weights.num_kv_heads], dim=1)
    if layer.qk_norm_HD is not None:
        spun = F.rms_norm(spun, (weights.head_size,), eps=weights.epsilon) * layer.qk_norm_HD
    query, key = _rotate(spun, cos, sin).split([weights.num_heads, weights.num_kv_heads], dim=1)
    return query, key, value


def attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    """Compute grouped-query attention, [B, T, H * D].

    It is written out for a CPU, where the fused kernel takes two to four times as long: in its backward pass at these
    sizes, and in all of bfloat16 on processors without native matrix multiplication. So it is for single tokens on a
    GPU, where time is spent on reading keys and values, which the fused kernel wants repeated for every query head.

    Args:
        query: [B, H, T, D].
        key: [B, K, S, D].
        value: [B, K, S, D].
        bias: 0 where a token may look, -inf elsewhere; [T, S], or [B, 1, T, S]. Token t must see no key beyond the
            first S - T + t + 1: on a CPU, later ones may be left out. Scores are in the wider of its dtype and that of
            the queries.
    """
    if query.is_cuda and query.shape[2] > 1:
        key, value = (t.repeat_interleave(query.shape[1] // t.shape[1], dim=1) for t in (key, value))
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias).transpose(1, 2).flatten(2)
    if query.shape[2] <= _QUERIES_AT_A_TIME:
        return _attend_together(query, key, value, bias)
    num_earlier = key.shape[2] - query.shape[2]
    parts: list[Tensor] = []
    for first in range(0, query.shape[2], _QUERIES_AT_A_TIME):
        some = slice(first, first + _QUERIES_AT_A_TIME)
        seen = slice(num_earlier + some.stop)
        parts.append(_attend_together(query[:, :, some], key[:, :, seen], value[:, :, seen], bias[..., some, seen]))
    return torch.cat(parts, dim=1)


def _attend_together(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    _, num_heads, length, size = query.shape
    num_kv_heads = key.shape[1]
    groups = num_heads // num_kv_heads
    grouped = query.unflatten(1, (num_kv_heads, groups)).flatten(2, 3) * size**-0.5
    scores = (grouped @ key.transpose(2, 3)).unflatten(2, (groups, length)) + bias.unsqueeze(-3)
    attended = scores.softmax(-1).to(value.dtype).flatten(2, 3) @ value
    return attended.unflatten(2, (groups, length)).flatten(1, 2).transpose(1, 2).flatten(2)


def finish_block(weights: Weights, layer: Layer, x: Tensor, attended: Tensor) -> Tensor:
    """Add the output projection of attended values [..., H * D] and the MLP to the residual stream, [..., E]."""
    x = x + layer.out(attended)
    hidden = norm(x, layer.norm_mlp_E, weights.epsilon, weights.dtype)
    gate, up = layer.gate_up(hidden).chunk(2, dim=-1)
    return x + layer.down(activation(gate, weights.relu_share) * up)


def activation(gate: Tensor, relu_share: float) -> Tensor:
    """Return SiLU, or ReLU for a share of the negative inputs, each drawn by itself (arXiv 2509.22358)."""
    if relu_share == 0:
        return F.silu(gate)
    is_dropped = (gate < 0) & (torch.rand_like(gate) < relu_share)
    return F.silu(gate).masked_fill(is_dropped, 0.0)


def logits_of(weights: Weights | ForeignWeights, hidden: Tensor) -> Tensor:
    """Return logits for hidden states [N, E], in float32; a head laid out in bfloat16 is multiplied as it is."""
    if isinstance(weights, ForeignWeights):
        return weights.logits(hidden)
    if weights.head.dtype == torch.float32:
        return F.linear(hidden.float(), weights.head)
    return wide_product(hidden.to(weights.head.dtype), weights.head.t())


def wide_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of two matrices of a narrow dtype as float32: not on a CPU, only the sums are in float32."""
    return a.float() @ b.float() if a.device.type == "cpu" else torch.mm(a, b, out_dtype=torch.float32)


def bias_of(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the bias of attention scores: 0 where a token may look, -inf elsewhere."""
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(~visible, -torch.inf)
