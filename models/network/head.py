"""The head: log-probabilities of target tokens, without holding the logits of all of them at once.

Shapes: N target tokens, E hidden size, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from models.network.compiled import compiled_on_gpu
from models.network.foreign.weights import ForeignWeights
from models.network.transformer import Weights, logits_of, wide_product

_LOGITS_AT_A_TIME = 2**26
"""Maximum number of logits computed at a time on a CPU: a quarter of a gigabyte."""
_ROWS_AT_A_TIME = 4_096
"""Number of tokens whose logits are computed at a time on a GPU, since small products leave it idle."""


def target_logprobs(
    weights: Weights | ForeignWeights, hidden_NE: Tensor, targets_N: Tensor, temperature: float = 1.0
) -> Tensor:
    """Return the log-softmax at the targets, [N]; more than one chunk is recomputed in the backward pass."""
    is_narrow = hidden_NE.device.type != "cpu" and hidden_NE.dtype == torch.bfloat16
    if is_narrow and isinstance(weights, Weights):
        return NarrowLogprobs.apply(hidden_NE, weights.head, targets_N, temperature)

    def chunk(hidden: Tensor, targets: Tensor) -> Tensor:
        logprobs = F.log_softmax(logits_of(weights, hidden) / temperature, dim=-1)
        return logprobs.gather(1, targets[:, None])[:, 0]

    size = max(1, _LOGITS_AT_A_TIME // len(weights.head))
    parts = list(zip(hidden_NE.split(size), targets_N.split(size), strict=True))
    if len(parts) == 1:
        return chunk(*parts[0])
    return torch.cat([checkpoint(chunk, *part, use_reentrant=False) for part in parts])


class NarrowLogprobs(Function):
    """Log-softmax at the targets with products of the hidden states' dtype, and float32 sums.

    Only the sums of the softmax are kept for the backward pass, which computes the logits again, once.
    """

    @staticmethod
    def forward(ctx: Any, hidden_NE: Tensor, head_VE: Tensor, targets_N: Tensor, temperature: float) -> Tensor:
        """Return the log-probabilities, [N]."""
        narrow_VE = head_VE.detach().to(hidden_NE.dtype)
        parts = [
            _logprobs_and_sums(wide_product(hidden, narrow_VE.t()), targets, temperature)
            for hidden, targets in zip(hidden_NE.split(_ROWS_AT_A_TIME), targets_N.split(_ROWS_AT_A_TIME), strict=True)
        ]
        logprobs_N, sums_N = (torch.cat(part) for part in zip(*parts, strict=True))
        ctx.save_for_backward(hidden_NE, narrow_VE, targets_N, sums_N)
        ctx.temperature, ctx.head_is_trained = temperature, head_VE.requires_grad
        return logprobs_N

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor, Tensor | None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the gradients of hidden states and head."""
        hidden_NE, narrow_VE, targets_N, sums_N = ctx.saved_tensors
        hidden_grad_NE = torch.empty_like(hidden_NE)
        head_grad_VE = torch.zeros_like(narrow_VE, dtype=torch.float32) if ctx.head_is_trained else None
        for first in range(0, len(hidden_NE), _ROWS_AT_A_TIME):
            part = slice(first, first + _ROWS_AT_A_TIME)
            logits = wide_product(hidden_NE[part], narrow_VE.t())
            slopes = _slopes(logits, targets_N[part], sums_N[part], grad_N[part], ctx.temperature, hidden_NE.dtype)
            hidden_grad_NE[part] = slopes @ narrow_VE
            if head_grad_VE is not None:
                head_grad_VE += wide_product(slopes.t(), hidden_NE[part])
        return hidden_grad_NE, head_grad_VE, None, None


@compiled_on_gpu
def _logprobs_and_sums(logits_NV: Tensor, targets_N: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Return the log-softmax at the targets, and the logarithm of its sum, [N] each."""
    sums_N = (logits_NV / temperature).logsumexp(-1)
    return logits_NV.gather(1, targets_N[:, None])[:, 0] / temperature - sums_N, sums_N


@compiled_on_gpu
def _slopes(
    logits_NV: Tensor, targets_N: Tensor, sums_N: Tensor, grad_N: Tensor, temperature: float, dtype: torch.dtype
) -> Tensor:
    """Return the gradient of each logit: the target's indicator minus its probability, over the temperature."""
    is_target_NV = torch.arange(logits_NV.shape[1], device=logits_NV.device) == targets_N[:, None]
    probabilities_NV = (logits_NV / temperature - sums_N[:, None]).exp()
    return ((is_target_NV.float() - probabilities_NV) * (grad_N / temperature)[:, None]).to(dtype)
