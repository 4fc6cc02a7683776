"""Draws of tokens from logits: greedy, or sampled, if asked from the likeliest tokens only.

Shapes: R rows, V vocabulary.
"""

import torch
from torch import Tensor

from schemas.sampling import Sampling


def draw(logits_RV: Tensor, sampling: Sampling, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return a token per row, and its log-probability, [R] each; greedy tokens have log-probability 0."""
    if sampling.temperature == 0:
        return logits_RV.argmax(-1), torch.zeros(len(logits_RV), device=logits_RV.device)
    probabilities = (logits_RV / sampling.temperature).softmax(-1)
    if sampling.top_p < 1:
        probabilities = _nucleus(probabilities, sampling.top_p)
    ids_R = (_race if logits_RV.is_cuda else by_running_sum)(probabilities, generator)
    return ids_R, probabilities.gather(1, ids_R[:, None])[:, 0].log()


def _nucleus(probabilities_RV: Tensor, top_p: float) -> Tensor:
    """Return probabilities among the fewest tokens that together have top_p of them; 0 for all others."""
    sorted_RV, order_RV = probabilities_RV.sort(dim=-1, descending=True)
    before_RV = sorted_RV.cumsum(-1) - sorted_RV
    kept_RV = torch.zeros_like(sorted_RV).scatter(1, order_RV, sorted_RV.masked_fill(before_RV >= top_p, 0))
    return kept_RV / kept_RV.sum(-1, keepdim=True)


def by_running_sum(probabilities_RV: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one index per row by looking up a uniform number in the running sum; multinomial draws V numbers per row."""
    sums_RV = probabilities_RV.cumsum(-1, dtype=torch.float64)
    uniform_R1 = torch.rand(len(sums_RV), 1, generator=generator, dtype=torch.float64, device=sums_RV.device)
    return torch.searchsorted(sums_RV, uniform_R1 * sums_RV[:, -1:], right=True)[:, 0]


def _race(probabilities_RV: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one index per row as the first arrival of exponential clocks, which a GPU draws faster than it sums up."""
    return (probabilities_RV / torch.empty_like(probabilities_RV).exponential_(generator=generator)).argmax(-1)
