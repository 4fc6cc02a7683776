"""The gate: decides if a candidate may be promoted, and gives every reason against it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from models.measurement.families import FamilyChange, by_family, lost, unseen
from models.measurement.intervals import Interval, paired_gain
from models.measurement.significance import sign_flip
from schemas.recipes.judging import GateRecipe


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision of the gate with its evidence."""

    passed: bool
    gain: Interval
    chance: float
    """One-sided p-value: how often a policy that is equal to its rival gains as much."""
    families: dict[str, FamilyChange]
    unseen_families: list[str]
    """Families with too few tasks to show a loss of any size; they pass unexamined."""
    reasons: list[str] = field(default_factory=list)
    calibrated: bool = True
    """True if the candidate's dreams hold for real."""


@dataclass(frozen=True, slots=True)
class Dreams:
    """Comparison of the candidate's dreams with the real environment; see `models.measurement.calibration`."""

    outcome_agreement: float
    outcome_kappa_high: float
    dream_real_gap: float


def judge(
    candidate: Mapping[str, float],
    start: Mapping[str, float],
    families: Mapping[str, str],
    dreams: Dreams,
    asked: GateRecipe,
) -> Verdict:
    """Judge whether the dream taught something that holds for real.

    Args:
        candidate: Real success by task id, between 0 and 1.
        start: Real success of the starting policy by task id.
        families: Family by task id.
        dreams: Calibration of the candidate's dreams.
        asked: Thresholds.

    Raises:
        ValueError: the two were not evaluated on the same tasks.
    """
    verdict, doubts = _comparison(candidate, start, families, asked), _doubts(dreams, asked)
    reasons = [*_uncertainty(verdict.gain, asked.margin), *verdict.reasons, *doubts]
    return replace(verdict, passed=not reasons, reasons=reasons, calibrated=not doubts)


def judge_succession(
    candidate: Mapping[str, float], champion: Mapping[str, float], families: Mapping[str, str], asked: GateRecipe
) -> Verdict:
    """Judge whether the candidate is better than the champion it would replace, and significantly worse in no family.

    An equal candidate replaces it at most at `asked.false_promotion_rate`, on tasks that are new to both, or on the
    same tasks again if they were played anew.

    Args:
        candidate: Real success by task id, between 0 and 1.
        champion: Real success of the champion by task id.
        families: Family by task id.
        asked: Thresholds.

    Raises:
        ValueError: the two were not evaluated on the same tasks.
    """
    verdict = _comparison(candidate, champion, families, asked)
    reasons = [*_luck(verdict, 1 if asked.margin == 1 else asked.false_promotion_rate), *verdict.reasons]
    return replace(verdict, passed=not reasons, reasons=reasons)


def _comparison(
    candidate: Mapping[str, float], rival: Mapping[str, float], families: Mapping[str, str], asked: GateRecipe
) -> Verdict:
    """Compare two policies: the gain over all tasks, and the loss in any family."""
    if candidate.keys() != rival.keys():
        raise ValueError("candidate and baseline were not evaluated on the same tasks")
    ids = sorted(candidate)
    mine, its = [candidate[i] for i in ids], [rival[i] for i in ids]
    chance = sign_flip([m - i for m, i in zip(mine, its, strict=True)])
    pairs = by_family(rival, candidate, families)
    changes = {family: one.change() for family, one in pairs.items()}
    reasons = [_loss(family, changes[family], asked.margin_of(family)) for family in lost(pairs, asked.margin_of)]
    return Verdict(not reasons, paired_gain(mine, its), chance, changes, unseen(pairs, asked.margin_of), reasons)


def _loss(family: str, change: FamilyChange, margin: float) -> str:
    return f"family {family} lost {-change.gain.mean:.1%}, beyond chance more than {margin:.1%}"


def _uncertainty(gain: Interval, margin: float) -> list[str]:
    if gain.low > -margin or margin == 1:
        return []
    return [f"real gain {gain.mean:+z.1%} may be as low as {gain.low:+z.1%}, which is not above {-margin:+z.1%}"]


def _luck(verdict: Verdict, allowed: float) -> list[str]:
    if verdict.chance <= allowed:
        return []
    return [
        f"real gain {verdict.gain.mean:+z.1%} may be luck: an equal policy shows as much in {verdict.chance:.2%} of "
        f"judgements, and {allowed:.2%} are allowed"
    ]


def _doubts(dreams: Dreams, asked: GateRecipe) -> list[str]:
    reasons: list[str] = []
    agreement, kappa, gap = dreams.outcome_agreement, max(0.0, dreams.outcome_kappa_high), dreams.dream_real_gap
    if agreement < asked.min_outcome_agreement:
        reasons.append(
            f"only {agreement:.1%} of dreamt outcomes hold for real, below {asked.min_outcome_agreement:.1%}"
        )
    elif asked.min_outcome_agreement and kappa < asked.min_outcome_kappa:
        reasons.append(
            f"dreamt outcomes agree with real ones hardly more than by chance: kappa is at most {kappa:.2f}, below "
            f"{asked.min_outcome_kappa:.2f}"
        )
    if abs(gap) > asked.max_dream_real_gap:
        reasons.append(f"dream and real success differ by {gap:+.1%}, more than {asked.max_dream_real_gap:.1%}")
    return reasons
