"""Trust in the dream, with the bounds of the gate, and the verdicts on the run's policies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.pages.wording import count, percent
from schemas.policies import GATES, POLICY_LABELS
from schemas.runs import BASELINES, Record
from tasks.judging.report_parts.gain import Answer


@dataclass(frozen=True, slots=True)
class Check:
    """One measure of the dream against the real environment."""

    measure: str
    value: str
    bound: str
    """Bound of the gate; empty if it has none."""
    holds: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """Verdict of the gate on one policy, and why."""

    policy: str
    passed: bool
    is_champion: bool
    reasons: list[str]
    remarks: list[str]


def trust(gate: Mapping[str, Any]) -> Answer:
    """Return whether the dream can be trusted, as far as the gate asks."""
    if not gate:
        return Answer("Not judged: the candidate's dreams were not compared with the real environment.", False)
    if gate["calibrated"]:
        return Answer("Yes: dreamt episodes hold for real within every bound of the gate.", True)
    return Answer(
        "No: dreamt episodes do not hold for real as the gate asks. Its success in dreams proves little.", False
    )


def trust_on_logs() -> Answer:
    """Return what can be said of dreams without a real environment."""
    return Answer("Not shown: no real environment was played. Dreams are compared with held-out logs only.", False)


def checks_on_logs(measured: Mapping[str, float], asked: Mapping[str, Any]) -> list[Check]:
    """Return the measures of the experience model on held-out logged episodes."""
    beaten = [
        Check(
            f"better than {name}",
            f"{measured[f'gain_over_{name}']:+.2f} ({measured[f'gain_over_{name}_low']:+.2f} to {measured[f'gain_over_{name}_high']:+.2f})",
            "above 0",
            measured[f"gain_over_{name}_low"] > 0,
            f"Word F1 of predicted next states, {measured['next_state_f1']:.2f}, beside {measured[f'{name}_f1']:.2f} of {words}.",
        )
        for name, words in BASELINES.items()
    ]
    agreement, least = measured["outcome_agreement"], asked["min_outcome_agreement"]
    meaning = "Share of held-out logged episodes whose actions end in the dream as they did in the log."
    return [
        *beaten,
        Check("outcomes agree", percent(agreement), f"at least {percent(least)}", agreement >= least, meaning),
    ]


def trust_checks(evaluation: Mapping[str, Any], gate: Mapping[str, Any]) -> list[Check]:
    """Return the measures of the candidate's dreams on test tasks, in the words of the gate."""
    asked = gate["thresholds"]
    return [
        _agreement(evaluation["outcome_agreement"], asked["min_outcome_agreement"]),
        _kappa(evaluation["outcome_kappa"], evaluation["outcome_kappa_high"], asked),
        _gap(evaluation["dream_real_gap"], asked["max_dream_real_gap"]),
        Check(
            "states agree",
            percent(evaluation["state_agreement"]),
            "",
            True,
            "Share of dreamt steps whose state is exactly the real one, in replays of the same actions.",
        ),
    ]


def lemma(evaluation: Mapping[str, Any]) -> str:
    """Return the measured gap of dream and real beside Lemma 1's bound on it; empty if that was not measured."""
    if "lemma1_bound" not in evaluation:
        return ""
    bound, gap = evaluation["lemma1_bound"], abs(evaluation["dream_real_gap"])
    return (
        f"Dream and real success differ by {gap:.3f}. Lemma 1 of the paper bounds this by {bound:.3g}, from errors of "
        f"{count(evaluation['num_compared_steps'])} single steps (reward {evaluation['one_step_reward_error']:.4f}, next state "
        f"{evaluation['one_step_state_error']:.4f}) and {evaluation['effective_horizon']:.1f} steps an episode; Theorem 1 takes twice the bound from the gain. "
        f"{_meaning(gap, bound)}"
    )


def _meaning(gap: float, bound: float) -> str:
    if bound > 1:
        return "The bound is vacuous: no gap can exceed 1."
    if gap > bound:
        return (
            "The gap exceeds the bound: the errors are means over few steps, and larger where they were not measured."
        )
    return "The gap is within the bound."


def _agreement(value: float, least: float) -> Check:
    meaning = "Share of dreamt episodes that end for real as they were dreamt."
    return Check("outcomes agree", percent(value), f"at least {percent(least)}", value >= least, meaning)


def _kappa(value: float, high: float, asked: Mapping[str, Any]) -> Check:
    least = asked["min_outcome_kappa"]
    meaning = (
        "Agreement beyond chance: 1 is perfect, 0 is no better than guessing. The gate checks the highest plausible "
        f"value, {high:.2f}."
    )
    holds = max(0.0, high) >= least or not asked["min_outcome_agreement"]
    return Check("kappa", f"{value:.2f}", f"at least {least:.2f}", holds, meaning)


def _gap(value: float, most: float) -> Check:
    kind = "kinder" if value > 0 else "harsher"
    meaning = f"The dream is {kind} than the real environment by {100 * abs(value):.1f} points, on the same tasks."
    held = "The dream grants as much success as the real environment." if not value else meaning
    return Check(
        "dream minus real", f"{100 * value:+.1f} points", f"within ±{100 * most:.1f}", abs(value) <= most, held
    )


def verdicts(record: Record) -> list[PolicyVerdict]:
    """Return the verdicts on the run's policies, in the order in which they were made."""
    if unproven := record.get("unproven"):
        is_champion = record.get("promoted") == "dream"
        return [PolicyVerdict(POLICY_LABELS["dream"], False, is_champion, unproven["reasons"], [])]
    judged = [(name.key, record.get(field)) for name, field in GATES.items()]
    return [_verdict(name, gate, record.get("promoted", "")) for name, gate in judged if gate]


def _verdict(name: str, gate: Mapping[str, Any], promoted: str) -> PolicyVerdict:
    succession = gate.get("over_champion")
    may = gate["passed"] and (not succession or succession["passed"])
    reasons = [*gate["reasons"], *(succession["reasons"] if succession else ())]
    return PolicyVerdict(POLICY_LABELS[name], may, promoted == name, list(dict.fromkeys(reasons)), _remarks(gate))


def _remarks(gate: Mapping[str, Any]) -> list[str]:
    remarks = [f"judged on {gate['judged_on']}"] if gate.get("judged_on") else []
    if gate.get("champion"):
        remarks.append(f"compared with champion {gate['champion'][:12]}")
    if gate["unseen_families"]:
        remarks.append(f"too few tasks to show a loss in {', '.join(gate['unseen_families'])}")
    return remarks
