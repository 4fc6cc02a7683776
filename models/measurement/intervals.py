"""Confidence intervals of success rates, and of paired differences over tasks or seeds."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import hypot, inf
from statistics import fmean

import numpy as np

from schemas.records import Trajectory


@dataclass(frozen=True, slots=True)
class Interval:
    """Mean with the bounds of its 95% interval."""

    mean: float
    low: float
    high: float


def success_by_task(episodes: Iterable[Trajectory]) -> dict[str, float]:
    """Return the share of each task's episodes that succeeded."""
    outcomes: dict[str, list[bool]] = defaultdict(list)
    for one in episodes:
        outcomes[one.task.task_id].append(one.success)
    return {task_id: fmean(some) for task_id, some in outcomes.items()}


def success_rate(successes: Sequence[float]) -> Interval:
    """Return the mean success of tasks, with its interval.

    If each is 0 or 1, the interval is Wilson's, which is informative even if all succeed; if a task's success is the
    share of several episodes, it is Student's over tasks.

    Raises:
        ValueError: no tasks.
    """
    if not {*successes} <= {0, 1}:
        return _student(successes, least=0, most=1)
    from scipy.stats import binomtest  # importing it takes a second

    test = binomtest(int(sum(successes)), len(successes))
    low, high = test.proportion_ci(method="wilson")
    return Interval(float(test.statistic), float(low), float(high))


def mean_over_seeds(values: Sequence[float]) -> Interval:
    """Return the mean of one value per seed, with Student's interval: seeds are few and differ more than their tasks.

    Raises:
        ValueError: fewer than two values.
    """
    if len(values) < 2:
        raise ValueError("an interval over seeds needs at least two")
    return _student(values)


def paired_gain(candidate: Sequence[float], start: Sequence[float]) -> Interval:
    """Return the mean difference of successes on the same tasks, with Student's interval; for one task, it is [-1, 1].

    Raises:
        ValueError: sequences of different lengths, or no tasks.
    """
    differences = [c - s for c, s in zip(candidate, start, strict=True)]
    return _student(differences, least=-1, most=1)


def independent_gain(candidate: Interval, start: Interval) -> Interval:
    """Return the difference of two rates measured on different tasks, with Newcombe's interval: it joins their own."""
    mean = candidate.mean - start.mean
    below = hypot(candidate.mean - candidate.low, start.high - start.mean)
    above = hypot(candidate.high - candidate.mean, start.mean - start.low)
    return Interval(mean, mean - below, mean + above)


def _student(values: Sequence[float], least: float = -inf, most: float = inf) -> Interval:
    from scipy.special import stdtrit

    count = len(values)
    if count == 0:
        raise ValueError("an interval needs at least one value")
    mean = float(np.mean(values))
    if count == 1:
        return Interval(mean, least, most)
    half = float(stdtrit(count - 1, 0.975)) * float(np.std(values, ddof=1)) / count**0.5
    return Interval(mean, max(least, mean - half), min(most, mean + half))
