"""Means of rubric scores with intervals, and whether the judge sees which predictions hold for real."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from models.measurement.intervals import Interval, independent_gain, success_rate
from models.measurement.rubric import DIMENSIONS, MAX_SCORE


def mean_scores(scores: Sequence[Mapping[str, int]]) -> dict[str, dict[str, float]]:
    """Return mean, low and high by dimension; empty without scores.

    The intervals treat transitions as independent, as the uniform draw makes them of the run's dreams.
    """
    if not scores:
        return {}
    return {name: asdict(_mean([one[name] for one in scores])) for name in DIMENSIONS}


def replay_agreement(scores: Sequence[tuple[Mapping[str, int], bool]]) -> dict[str, Any]:
    """Return the mean score of predictions that hold for real, of those that do not, and the difference.

    A judge that sees errors scores the former higher. The score of a prediction is the mean of its four.

    Args:
        scores: Scores of each prediction, and whether the real environment did the same from the same state.

    Returns:
        num_held, num_wrong, and, if neither is 0, the means `held` and `wrong` and `difference`, each with its 95%
        interval.
    """
    held, wrong = ([fmean(one.values()) for one, holds in scores if holds is kind] for kind in (True, False))
    counts: dict[str, Any] = {"num_held": len(held), "num_wrong": len(wrong)}
    if not held or not wrong:
        return counts
    of_held, of_wrong = _mean(held), _mean(wrong)
    difference = independent_gain(of_held, of_wrong)
    means = {"held": of_held, "wrong": of_wrong, "difference": difference}
    return counts | {name: asdict(one) for name, one in means.items()}


def _mean(scores: Sequence[float]) -> Interval:
    """Return the mean of scores between 0 and 2 with its interval: Wilson's if all are 0 or 2, else Student's."""
    share = success_rate([score / MAX_SCORE for score in scores])
    return Interval(*(MAX_SCORE * value for value in (share.mean, share.low, share.high)))
