"""The head: log-probabilities of target tokens, without holding the logits of all of them at once.

Shapes: N target tokens, E hidden size.
"""

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from models.network.transformer import Weights, logits_of

_LOGITS_AT_A_TIME = 2**26
"""Maximum number of logits computed at a time: a quarter of a gigabyte."""


def target_logprobs(weights: Weights, hidden_NE: Tensor, targets_N: Tensor, temperature: float = 1.0) -> Tensor:
    """Return the log-softmax at the targets, [N]; more than one chunk is recomputed in the backward pass."""

    def chunk(hidden: Tensor, targets: Tensor) -> Tensor:
        logprobs = F.log_softmax(logits_of(weights, hidden) / temperature, dim=-1)
        return logprobs.gather(1, targets[:, None])[:, 0]

    size = max(1, _LOGITS_AT_A_TIME // len(weights.head))
    parts = list(zip(hidden_NE.split(size), targets_N.split(size), strict=True))
    if len(parts) == 1:
        return chunk(*parts[0])
    return torch.cat([checkpoint(chunk, *part, use_reentrant=False) for part in parts])
