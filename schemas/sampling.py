"""How tokens are asked for, and what comes back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn."""

    max_new_tokens: int
    end_id: int
    """Token that ends what is sampled; negative: none does."""
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    """Only the likeliest tokens are drawn that together are this likely (arXiv 1904.09751, section 3.1). Never for what is
    trained on: a trainer does not know which tokens were left out."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """What one row sampled, with log-probabilities as they were drawn from; 0 where it was greedy."""

    ids: list[int]
    logprobs: list[float]
    ended: bool
    """False: cut off at max_new_tokens."""
    weight_version: str = ""
    """Digest of the weights that sampled."""
