"""Intervals of success rates, and paired comparisons by bootstrap over tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, t

_RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the bounds of its 95% interval."""

    mean: float
    low: float
    high: float


def success_rate(successes: Sequence[float]) -> Interval:
    """Mean success of tasks, with its interval.

    Where each is 0 or 1 it is Wilson's, which says something even where all succeed; where a task's success is the share
    of several episodes, tasks are resampled.

    Raises:
        ValueError: no tasks.
    """
    if not {*successes} <= {0, 1}:
        return bootstrap_mean(successes)
    test = binomtest(int(sum(successes)), len(successes))
    low, high = test.proportion_ci(method="wilson")
    return Interval(float(test.statistic), float(low), float(high))


def mean_over_seeds(values: Sequence[float]) -> Interval:
    """Mean of one value per seed, with Student's interval: seeds are few and differ by more than their tasks do.

    Raises:
        ValueError: fewer than two values.
    """
    if len(values) < 2:
        raise ValueError("an interval over seeds needs at least two")
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / len(values) ** 0.5
    half = float(t.ppf(0.975, len(values) - 1)) * error
    return Interval(mean, mean - half, mean + half)


def bootstrap_mean(values: Sequence[float], seed: int = 0) -> Interval:
    """Mean of one value per task, with a percentile interval over resampled tasks.

    Raises:
        ValueError: no values.
    """
    if len(values) == 0:
        raise ValueError("an interval needs at least one value")
    array = np.asarray(values, dtype=float)
    generator = np.random.default_rng(seed)
    means = np.array([array[generator.integers(0, len(array), len(array))].mean() for _ in range(_RESAMPLES)])
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(array.mean()), float(low), float(high))


def paired_gain(candidate: Sequence[float], start: Sequence[float], seed: int = 0) -> Interval:
    """Mean difference on the same tasks, with its interval.

    Raises:
        ValueError: sequences of different lengths.
    """
    differences = [c - s for c, s in zip(candidate, start, strict=True)]
    return bootstrap_mean(differences, seed)
