"""Ratios of probabilities from differences of log-probabilities, too small to overflow."""

from torch import Tensor

_LARGEST = 20.0
"""Logarithm of the largest ratio: far above what a policy that learns comes to. One ratio of infinity would lose the update."""


def ratios(log_ratios: Tensor) -> Tensor:
    """Return the ratios of these logarithms, of which none is above e**20."""
    return _bounded(log_ratios).exp()


def k3(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """Return the k3 estimate of the KL to the reference, per token: exp(d) - d - 1 with d = reference - current."""
    difference = _bounded(reference_logprobs - logprobs)
    return difference.exp() - difference - 1


def _bounded(log_ratios: Tensor) -> Tensor:
    """Return logarithms bounded above only: small ratios overflow nothing, and their KL has to pull the policy back."""
    return log_ratios.clamp(max=_LARGEST)
