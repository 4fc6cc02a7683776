"""Tests of paired differences for few tasks and small error rates: exact sign flips, and Holm's correction."""

from collections.abc import Mapping, Sequence
from math import gcd

import numpy as np

_UNITS = 420
"""Units per 1 that differences are rounded to; shares of up to seven episodes, and multiples of 5%, are exact."""


def sign_flip(differences: Sequence[float]) -> float:
    """Return the chance of a sum as large as this one if each difference were as likely to have the other sign.

    One-sided and exact (Fisher's randomisation test, The Design of Experiments, 1935): between equal policies, a coin
    decides which of them won a task. The distribution of the sum is the inverse transform of a product of cosines.

    Args:
        differences: One per task, between -2 and 2, positive in favour of the candidate.
    """
    units = np.rint(np.asarray(differences) * _UNITS).astype(int)
    sizes, counts = np.unique(np.abs(units[units != 0]), return_counts=True)
    if len(sizes) == 0:
        return 1.0
    unit = gcd(*sizes.tolist())
    total, largest = int(units.sum()) // unit, int(sizes @ counts) // unit
    chances = _sums_of_flips(sizes // unit, counts, largest)
    tail = chances[abs(total) + (total <= 0) : largest + 1].sum()
    return float(min(1.0, 1 - tail if total <= 0 else tail))


def _sums_of_flips(sizes: np.ndarray, counts: np.ndarray, largest: int) -> np.ndarray:
    """Return the chance of each sum from 0 to the largest one."""
    length = 1 << (2 * largest).bit_length()
    angles = 2 * np.pi * np.arange(length // 2 + 1) / length
    spectrum = np.ones_like(angles)
    for size, count in zip(sizes, counts, strict=True):
        spectrum *= np.cos(angles * size) ** count
    return np.maximum(0.0, np.fft.irfft(spectrum, length))


def holm(p_values: Mapping[str, float], level: float) -> set[str]:
    """Return the names of refuted hypotheses; the chance that any true one is among them is at most `level`.

    Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    refuted: set[str] = set()
    for name in sorted(p_values, key=lambda one: p_values[one]):
        if p_values[name] > level / (len(p_values) - len(refuted)):
            break
        refuted.add(name)
    return refuted
