"""Comparison of the tokens that an engine draws with the probabilities that the network gives them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from scipy.stats import chisquare

_FEW = 5
"""Expected count below which a chi-square test does not hold."""


def nucleus_of(likely: Sequence[float], top_p: float) -> dict[int, float]:
    """Return the fewest likeliest tokens that reach `top_p` together, with their renormalised probabilities."""
    kept, so_far = {}, 0.0
    for token in sorted(range(len(likely)), key=lambda token: -likely[token]):
        if so_far >= top_p:
            break
        kept[token] = likely[token]
        so_far += likely[token]
    return {token: p / so_far for token, p in kept.items()}


def likelihood_of_draws(drawn: Sequence[int], likely: Mapping[int, float]) -> float:
    """Return the p-value of a chi-square test of drawn tokens; the rare ones are counted as one."""
    counts = Counter(drawn)
    assert set(counts) <= set(likely)
    rare = {token for token, p in likely.items() if len(drawn) * p < _FEW}
    observed = [counts[token] for token in likely if token not in rare]
    expected = [len(drawn) * p for token, p in likely.items() if token not in rare]
    if rare:
        observed.append(sum(counts[token] for token in rare))
        expected.append(len(drawn) * sum(likely[token] for token in rare))
    return chisquare(observed, expected).pvalue
