"""Gain of a run: real success of its policies with intervals, over all tasks and by family."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from infra.pages.charts import DREAM, POLICY_LOOKS, REAL, Series, forest, share_point
from infra.pages.wording import bounds, count, is_shown, percent, points
from models.measurement.intervals import Interval, success_rate
from schemas.policies import POLICY_LABELS
from schemas.runs import Record

_COMPARED = ("start", "dream", "sim_to_real")
"""Policies to compare by family; the champion is left out."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Sentence that answers a question, and whether the answer is good news."""

    sentence: str
    is_good: bool


def policies_of(results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the results of the policies that the run evaluated, by label, in display order."""
    return {label: results[name] for name, label in POLICY_LABELS.items() if name in results}


def headline(record: Record) -> Answer:
    """Return in one sentence what the dream gained for real, or how far the run came."""
    gate, results = record["gate"], record["results"]
    if record.get("unproven"):
        return _dreamt_headline(record)
    if not gate:
        return Answer(f"Not judged yet: the run went as far as {record['reached'] or 'its first stage'}.", False)
    start, dream, gain = results["start"], results["dream"], gate["gain"]
    moved = f"{percent(start['real_success'])} to {percent(dream['real_success'])}"
    proof = f"{points(gain)} on {count(dream['num_tasks'])} test tasks"
    if not is_shown(gain):
        return Answer(f"No gain is shown: real success went from {moved}, {proof}.", False)
    rose = gain["mean"] > 0
    steps = f"with {count(dream['real_interactions'])} real steps of training"
    return Answer(
        f"Real success {'rose' if rose else 'fell'} from {moved} by training in the dream: {proof}, {steps}.", rose
    )


def _dreamt_headline(record: Record) -> Answer:
    """Return in one sentence what dreams of held-out logged tasks say."""
    start, dream = record["dreamt"]["start"], record["dreamt"]["dream"]
    moved = f"{percent(start['dream_success'])} to {percent(dream['dream_success'])}"
    gain = points(record["unproven"]["dreamt_gain"])
    return Answer(
        f"Nothing is proven for real: dreamt success on {count(dream['num_tasks'])} held-out logged tasks went from {moved}, "
        f"{gain}.",
        False,
    )


def real_headline(record: Record) -> str:
    """Return in one sentence what sim-to-real added; empty if it did not run."""
    results, gate = record["results"], record.get("real_gate")
    if "sim_to_real" not in results or not gate:
        return ""
    after, gain = results["sim_to_real"], gate["gain"]
    cost = f"after {count(after['real_interactions'])} real steps of training"
    if not is_shown(gain):
        return (
            f"Sim-to-real changed nothing that {count(after['num_tasks'])} test tasks can show: {points(gain)} {cost}."
        )
    return f"Sim-to-real {'added' if gain['mean'] > 0 else 'lost'} {points(gain)} {cost}."


def memorised(memorisation: Mapping[str, float], calibrations: Sequence[Mapping[str, Any]]) -> str:
    """Return how much more often the starting policy wins the tasks it was cloned from; empty if not known."""
    if not {"cloned_success", "other_success"} <= memorisation.keys():
        return ""
    cloned, other = (
        f"{percent(memorisation[f'{name}_success'])} of {count(memorisation[f'num_{name}'])} episodes"
        for name in ("cloned", "other")
    )
    valid = f", and {percent(calibrations[0]['real_success'])} of valid tasks" if calibrations else ""
    return (
        f"The starting policy wins {cloned} of the train tasks it was cloned from, {other} of other train tasks{valid}."
    )


def success_chart(results: Mapping[str, Any]) -> Markup:
    """Draw real success with intervals, and dreamt success below it."""
    shown = policies_of(results)
    real = [share_point(row, one["real_success"], *one["interval"]) for row, one in enumerate(shown.values())]
    dreamt = [share_point(row, one["dream_success"]) for row, one in enumerate(shown.values())]
    series = [Series("real, with 95% interval", real, REAL), Series("in the dream", dreamt, DREAM)]
    return forest("Success on test tasks, real and dreamt, by policy", list(shown), series, "success (%)")


def family_table(evaluations: Mapping[str, Any], gate: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows: real success of each policy on each family's tasks, and the gain with its interval."""
    names = [name for name in POLICY_LABELS if name in evaluations]
    rates = {name: family_rates(evaluations[name]) for name in names}
    families = sorted({family for of_policy in rates.values() for family in of_policy})
    judged = gate["families"] if gate else {}
    rows = [
        [family, *(_rate(of_policy.get(family)) for of_policy in rates.values()), *_judged(judged.get(family))]
        for family in families
    ]
    return ["family", *(POLICY_LABELS[name] for name in names), "gain by dream training", "tasks"], rows


def family_rates(evaluation: Mapping[str, Any]) -> dict[str, Interval]:
    """Return real success with its interval by family."""
    families: dict[str, list[float]] = {}
    for task_id, family in evaluation["families"].items():
        families.setdefault(family, []).append(evaluation["successes"][task_id])
    return {family: success_rate(successes) for family, successes in families.items()}


def _rate(rate: Interval | None) -> str:
    return f"{percent(rate.mean)} ({bounds((rate.low, rate.high))})" if rate else ""


def _judged(family: Mapping[str, Any] | None) -> list[str]:
    """Return the gain on a family's tasks and their number, as far as the gate judged them."""
    return [points(family["gain"]), count(family["num_tasks"])] if family else ["", ""]


def family_chart(evaluations: Mapping[str, Any]) -> Markup:
    """Draw real success by family, one mark per policy."""
    rates = {name: family_rates(evaluations[name]) for name in _COMPARED if name in evaluations}
    families = sorted({family for of_policy in rates.values() for family in of_policy})
    series: list[Series] = []
    for name, of_policy in rates.items():
        known = [(row, of_policy[family]) for row, family in enumerate(families) if family in of_policy]
        marks = [share_point(row, rate.mean, rate.low, rate.high) for row, rate in known]
        series.append(Series(POLICY_LABELS[name], marks, POLICY_LOOKS[name]))
    return forest("Real success by task family and policy", families, series, "real success (%)")
