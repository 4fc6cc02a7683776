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
class FamilyChange:
    """Real success of the two policies on one task family."""

    num_tasks: int
    baseline: float
    candidate: float
    gain: Interval


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's answer with its evidence."""

    passed: bool
    gain: Interval
    families: dict[str, FamilyChange]
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
    members: dict[str, list[str]] = defaultdict(list)
    for task_id in sorted(candidate):
        members[families[task_id]].append(task_id)
    changes = {
        family: _change([baseline[i] for i in ids], [candidate[i] for i in ids]) for family, ids in members.items()
    }
    reasons = _objections(gain, changes, outcome_agreement, dream_real_gap, options)
    return Verdict(not reasons, gain, changes, reasons)


def _change(baseline: list[bool], candidate: list[bool]) -> FamilyChange:
    num_tasks = len(baseline)
    return FamilyChange(
        num_tasks, sum(baseline) / num_tasks, sum(candidate) / num_tasks, paired_gain(candidate, baseline)
    )


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
    gain: Interval, changes: Mapping[str, FamilyChange], agreement: float, gap: float, options: GateOptions
) -> list[str]:
    reasons: list[str] = []
    if gain.low <= -options.margin:
        reasons.append(
            f"real gain {gain.mean:+.1%} may be as low as {gain.low:+.1%}, which is not above {0.0 - options.margin:+.1%}"
        )
    for family, change in changes.items():
        if change.gain.mean < -options.family_margin:
            reasons.append(f"family {family} lost {-change.gain.mean:.1%}, more than {options.family_margin:.1%}")
    if agreement < options.min_outcome_agreement:
        reasons.append(
            f"only {agreement:.1%} of dreamt outcomes hold for real, below {options.min_outcome_agreement:.1%}"
        )
    if abs(gap) > options.max_dream_real_gap:
        reasons.append(f"dream and real success differ by {gap:+.1%}, more than {options.max_dream_real_gap:.1%}")
    return reasons
