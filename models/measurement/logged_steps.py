"""Quality of predicted next states on logged transitions, beside predictions that need no model.

Baselines: nothing changes (the state stays as it is), and the next state of the nearest transition that was learnt from.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean

from models.measurement.intervals import Interval, paired_gain


def word_f1(predicted: str, truth: str) -> float:
    """Return the harmonic mean of precision and recall of the words of a text, as in SQuAD (arXiv 1606.05250, 6.1).

    1 for equal texts, 0 without a common word.
    """
    if predicted == truth:
        return 1.0
    wanted, given = Counter(truth.split()), Counter(predicted.split())
    num_common = (wanted & given).total()
    return 2 * num_common / (wanted.total() + given.total()) if num_common else 0.0


def scores(predicted: Sequence[str], truth: Sequence[str]) -> list[float]:
    """Return the word F1 of each predicted next state."""
    return [word_f1(*pair) for pair in zip(predicted, truth, strict=True)]


def gain_over(scored: Sequence[float], baseline: Sequence[float], episodes: Sequence[str]) -> Interval:
    """Return the mean difference of scores with its 95% interval over episodes, whose transitions are not independent.

    Args:
        scored: Score of each transition.
        baseline: Score of the baseline on the same transitions.
        episodes: Id of the episode of each transition.

    Raises:
        ValueError: no transitions, or sequences of different lengths.
    """
    by_episode: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, *pair in zip(episodes, scored, baseline, strict=True):
        by_episode[name].append((pair[0], pair[1]))
    means = [(fmean(one for one, _ in pairs), fmean(other for _, other in pairs)) for pairs in by_episode.values()]
    return paired_gain([mine for mine, _ in means], [its for _, its in means])
