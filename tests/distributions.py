"""What an engine draws, against what the network says is likely."""

from collections import Counter
from collections.abc import Mapping, Sequence

from scipy.stats import chisquare

_FEW = 5
"""Below this expected count a chi-square test does not hold."""


def nucleus_of(likely: Sequence[float], top_p: float) -> dict[int, float]:
    """The fewest tokens that together are so likely, and how likely each is among them."""
    kept, so_far = {}, 0.0
    for token in sorted(range(len(likely)), key=lambda token: -likely[token]):
        if so_far >= top_p:
            break
        kept[token] = likely[token]
        so_far += likely[token]
    return {token: p / so_far for token, p in kept.items()}


def likelihood_of_draws(drawn: Sequence[int], likely: Mapping[int, float]) -> float:
    """The p-value of a chi-square test of drawn tokens; the rare ones are counted as one."""
    counts = Counter(drawn)
    assert set(counts) <= set(likely)
    rare = {token for token, p in likely.items() if len(drawn) * p < _FEW}
    observed = [counts[token] for token in likely if token not in rare]
    expected = [len(drawn) * p for token, p in likely.items() if token not in rare]
    if rare:
        observed.append(sum(counts[token] for token in rare))
        expected.append(len(drawn) * sum(likely[token] for token in rare))
    return chisquare(observed, expected).pvalue
