"""The gate: whether a candidate may be promoted, and every reason why not."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from models.intervals import Interval, paired_gain


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What a candidate must show."""

    margin: float
    family_margin: float
    min_outcome_agreement: float
    max_dream_real_gap: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's answer with its evidence."""

    passed: bool
    gain: Interval
    family_gains: dict[str, float]
    reasons: list[str] = field(default_factory=list)


def judge(
    candidate: Mapping[str, bool],
    baseline: Mapping[str, bool],
    families: Mapping[str, str],
    outcome_agreement: float,
    dream_real_gap: float,
    options: GateOptions,
) -> Verdict:
    """Compare two policies on the same held-out real tasks.

    Args:
        candidate: Real success by task id.
        baseline: The same of the starting policy or the champion.
        families: Family by task id.
        outcome_agreement: Of the candidate's dreams with their replay.
        dream_real_gap: Dream minus real success of the candidate.
        options: Thresholds.

    Raises:
        ValueError: the two were not evaluated on the same tasks.
    """
    gain = gain_over(baseline, candidate)
    by_family: dict[str, list[int]] = defaultdict(list)
    for task_id in sorted(candidate):
        by_family[families[task_id]].append(candidate[task_id] - baseline[task_id])
    family_gains = {family: sum(gains) / len(gains) for family, gains in by_family.items()}
    reasons = _objections(gain, family_gains, outcome_agreement, dream_real_gap, options)
    return Verdict(not reasons, gain, family_gains, reasons)


def gain_over(baseline: Mapping[str, bool], candidate: Mapping[str, bool]) -> Interval:
    """Paired gain in real success, by task id.

    Raises:
        ValueError: the two were not evaluated on the same tasks.
    """
    if candidate.keys() != baseline.keys():
        raise ValueError("candidate and baseline were not evaluated on the same tasks")
    ids = sorted(candidate)
    return paired_gain([candidate[i] for i in ids], [baseline[i] for i in ids])


def _objections(
    gain: Interval, family_gains: Mapping[str, float], agreement: float, gap: float, options: GateOptions
) -> list[str]:
    reasons: list[str] = []
    if gain.low <= -options.margin:
        reasons.append(
            f"real gain {gain.mean:+.1%} may be as low as {gain.low:+.1%}, which is not above {0.0 - options.margin:+.1%}"
        )
    for family, change in family_gains.items():
        if change < -options.family_margin:
            reasons.append(f"family {family} lost {-change:.1%}, more than {options.family_margin:.1%}")
    if agreement < options.min_outcome_agreement:
        reasons.append(
            f"only {agreement:.1%} of dreamt outcomes hold for real, below {options.min_outcome_agreement:.1%}"
        )
    if abs(gap) > options.max_dream_real_gap:
        reasons.append(f"dream and real success differ by {gap:+.1%}, more than {options.max_dream_real_gap:.1%}")
    return reasons
