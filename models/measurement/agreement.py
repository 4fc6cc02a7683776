"""Agreement of dreamt outcomes with real ones beyond chance."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

_DRAWS = 10_000


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Counts of dreamt episodes by whether the dream and its real replay were won."""

    both_won: int
    only_dreamt_won: int
    only_real_won: int
    both_lost: int

    @classmethod
    def count(cls, pairs: Iterable[tuple[bool, bool]]) -> "Outcomes":
        """Count pairs of (dream won, replay won)."""
        listed = list(pairs)
        return cls(*(listed.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False))))

    @property
    def agreement(self) -> float:
        """Share of episodes whose dream and replay have the same outcome; 0 without episodes."""
        return (self.both_won + self.both_lost) / max(1, sum(self._counts))

    @property
    def win_precision(self) -> float | None:
        """Share of dreamt wins that are real; None without dreamt wins."""
        return _share(self.both_won, self.only_dreamt_won)

    @property
    def win_recall(self) -> float | None:
        """Share of real wins that were dreamt; None without real wins."""
        return _share(self.both_won, self.only_real_won)

    @property
    def kappa(self) -> float:
        """Cohen's kappa: agreement beyond chance, as a share of the most that is possible beyond chance.

        1 if all agree, even if all were won, which leaves nothing beyond chance. Cohen, A coefficient of agreement for
        nominal scales, 1960.
        """
        return float(_kappa(np.array(self._counts, dtype=float)))

    @property
    def kappa_high(self) -> float:
        """Largest plausible kappa: its 95% bound under Jeffreys' prior on the four counts.

        It stays high if nearly all episodes are won, or lost: too few are left to show that a dream knows nothing.
        """
        drawn = np.random.default_rng(0).dirichlet(np.array(self._counts) + 0.5, _DRAWS)
        return float(np.percentile(_kappa(drawn), 95))

    @property
    def _counts(self) -> tuple[int, int, int, int]:
        return self.both_won, self.only_dreamt_won, self.only_real_won, self.both_lost


def _share(hits: int, misses: int) -> float | None:
    return hits / (hits + misses) if hits + misses else None


def _kappa(counts: np.ndarray) -> np.ndarray:
    """Return kappa along the last axis."""
    both, dreamt, real, neither = np.moveaxis(counts, -1, 0)
    disagreeing, by_chance = dreamt + real, (both + dreamt) * (dreamt + neither) + (both + real) * (real + neither)
    return 1 - np.divide(
        disagreeing * (both + neither + disagreeing), by_chance, out=np.zeros_like(by_chance), where=by_chance > 0
    )
