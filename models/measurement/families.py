"""Change of real success by task family: families with a significant loss, and families too small to tell."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from models.measurement.intervals import Interval, paired_gain
from models.measurement.significance import holm, sign_flip

_LEVEL = 0.05
"""Maximum rate of reporting a loss beyond the margin in any family if there is none."""


@dataclass(frozen=True, slots=True)
class FamilyChange:
    """Real success of two policies on one task family."""

    num_tasks: int
    baseline: float
    candidate: float
    gain: Interval


@dataclass(frozen=True, slots=True)
class FamilyPairs:
    """Real success of two policies on the tasks of one family, in the same order."""

    baseline: list[float]
    candidate: list[float]

    def change(self) -> FamilyChange:
        """Return means and paired gain."""
        count = len(self.baseline)
        gain = paired_gain(self.candidate, self.baseline)
        return FamilyChange(count, sum(self.baseline) / count, sum(self.candidate) / count, gain)

    def chance_of_loss(self, margin: float) -> float:
        """Return the chance of this loss if the true loss were within the margin; 1 if the observed one is."""
        losses = [b - c - margin for b, c in zip(self.baseline, self.candidate, strict=True)]
        return sign_flip(losses) if sum(losses) > 0 else 1.0

    def chance_of_losing_all(self, margin: float) -> float:
        """Return the same for the worst case, a candidate that lost all that the baseline won."""
        return FamilyPairs(self.baseline, [0.0] * len(self.baseline)).chance_of_loss(margin)


def by_family(
    baseline: Mapping[str, float], candidate: Mapping[str, float], families: Mapping[str, str]
) -> dict[str, FamilyPairs]:
    """Group successes by family, in the order of task ids."""
    members: dict[str, list[str]] = defaultdict(list)
    for task_id in sorted(candidate):
        members[families[task_id]].append(task_id)
    return {
        family: FamilyPairs([baseline[i] for i in ids], [candidate[i] for i in ids]) for family, ids in members.items()
    }


def lost(pairs: Mapping[str, FamilyPairs], margin_of: Callable[[str], float]) -> list[str]:
    """Return families that lost more than their margin beyond chance, corrected for the number of families."""
    return sorted(holm({name: one.chance_of_loss(margin_of(name)) for name, one in pairs.items()}, _LEVEL))


def unseen(pairs: Mapping[str, FamilyPairs], margin_of: Callable[[str], float]) -> list[str]:
    """Return families with too few tasks to show the loss of all that was won, though it exceeds the margin."""
    strictest = _LEVEL / len(pairs)
    return sorted(
        name
        for name, one in pairs.items()
        if sum(one.baseline) > margin_of(name) * len(one.baseline)
        and one.chance_of_losing_all(margin_of(name)) > strictest
    )
