"""How tokens are asked for, and what comes back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn."""

    max_new_tokens: int
    end_id: int
    temperature: float = 1.0
    """0 is greedy."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """What one row sampled, with log-probabilities at the sampling temperature; 0 where it was greedy."""

    ids: list[int]
    logprobs: list[float]
    ended: bool
    """False: cut off at max_new_tokens."""
    weight_version: str = ""
    """Digest of the weights that sampled."""
