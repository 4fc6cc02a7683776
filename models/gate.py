"""The gate: whether a candidate may be promoted, and every reason why not."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from models.intervals import Interval, paired_gain


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What a candidate must show."""

    margin: float
    champion_margin: float
    family_margin: float
    family_margins: Mapping[str, float]
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
    calibrated: bool = True
    """Whether the candidate's dreams hold for real."""


def judge(
    candidate: Mapping[str, float],
    start: Mapping[str, float],
    families: Mapping[str, str],
    outcome_agreement: float,
    dream_real_gap: float,
    options: GateOptions,
) -> Verdict:
    """Whether the dream taught something that holds for real.

    Args:
        candidate: Real success by task id.
        start: The same of the starting policy.
        families: Family by task id.
        outcome_agreement: Of the candidate's dreams with their replay.
        dream_real_gap: Dream minus real success of the candidate.
        options: Thresholds.

    Raises:
        ValueError: the two were not evaluated on the same tasks.
    """
    verdict = _comparison(candidate, start, families, options.margin, options)
    doubts = _doubts(outcome_agreement, dream_real_gap, options)
    reasons = verdict.reasons + doubts
    return replace(verdict, passed=not reasons, reasons=reasons, calibrated=not doubts)


def judge_succession(
    candidate: Mapping[str, float], champion: Mapping[str, float], families: Mapping[str, str], options: GateOptions
) -> Verdict:
    """Whether the candidate is no worse than the champion whose place it would take, overall and in every family.

    Args:
        candidate: Real success by task id.
        champion: The same of the champion.
        families: Family by task id.
        options: Thresholds.

    Raises:
        ValueError: the two were not evaluated on the same tasks.
    """
    return _comparison(candidate, champion, families, options.champion_margin, options)


def _comparison(
    candidate: Mapping[str, float],
    rival: Mapping[str, float],
    families: Mapping[str, str],
    margin: float,
    options: GateOptions,
) -> Verdict:
    gain = gain_over(rival, candidate)
    members: dict[str, list[str]] = defaultdict(list)
    for task_id in sorted(candidate):
        members[families[task_id]].append(task_id)
    changes = {family: _change([rival[i] for i in ids], [candidate[i] for i in ids]) for family, ids in members.items()}
    reasons = _losses(gain, margin, changes, options)
    return Verdict(not reasons, gain, changes, reasons)


def _change(baseline: list[float], candidate: list[float]) -> FamilyChange:
    num_tasks = len(baseline)
    return FamilyChange(
        num_tasks, sum(baseline) / num_tasks, sum(candidate) / num_tasks, paired_gain(candidate, baseline)
    )


def gain_over(baseline: Mapping[str, float], candidate: Mapping[str, float]) -> Interval:
    """Paired gain in real success, by task id.

    Raises:
        ValueError: the two were not evaluated on the same tasks.
    """
    if candidate.keys() != baseline.keys():
        raise ValueError("candidate and baseline were not evaluated on the same tasks")
    ids = sorted(candidate)
    return paired_gain([candidate[i] for i in ids], [baseline[i] for i in ids])


def _losses(gain: Interval, margin: float, changes: Mapping[str, FamilyChange], options: GateOptions) -> list[str]:
    reasons: list[str] = []
    if gain.low <= -margin:
        reasons.append(
            f"real gain {gain.mean:+z.1%} may be as low as {gain.low:+z.1%}, which is not above {-margin:+z.1%}"
        )
    for family, change in changes.items():
        allowed = options.family_margins.get(family, options.family_margin)
        if change.gain.mean < -allowed:
            reasons.append(f"family {family} lost {-change.gain.mean:.1%}, more than {allowed:.1%}")
    return reasons


def _doubts(agreement: float, gap: float, options: GateOptions) -> list[str]:
    reasons: list[str] = []
    if agreement < options.min_outcome_agreement:
        reasons.append(
            f"only {agreement:.1%} of dreamt outcomes hold for real, below {options.min_outcome_agreement:.1%}"
        )
    if abs(gap) > options.max_dream_real_gap:
        reasons.append(f"dream and real success differ by {gap:+.1%}, more than {options.max_dream_real_gap:.1%}")
    return reasons
