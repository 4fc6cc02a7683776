"""Verdict of a comparison: which run is better, by how much, at what cost; as one sentence and as forest plots."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from infra.pages.charts import POLICY_LOOKS, Point, Series, forest, share_point
from infra.pages.wording import is_shown, points, times
from schemas.policies import POLICY_LABELS

_FIRST_ASKED = ("dream", "sim_to_real", "start")
"""Policies that runs are compared by, the first that both have."""


def verdicts(table: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each run but the first, which they are compared with."""
    return [_verdict(table, place) for place in range(1, len(table["runs"]))]


def _verdict(table: Mapping[str, Any], place: int) -> str:
    first, other = table["runs"][0], table["runs"][place]
    cost = f"it cost {_cost(table, place)}"
    known = ((name, table["differences"][name][place - 1]) for name in _FIRST_ASKED)
    name, gain = next(((name, gain) for name, gain in known if gain), ("", {}))
    if not gain:
        return f"{other} and {first} have no evaluated policy in common; {cost}."
    where = f"{_tasks(gain)} ({POLICY_LABELS[name]})"
    if not is_shown(gain):
        return f"No difference between {other} and {first} is shown: {points(gain)} {where}; {cost}."
    size = sorted(100 * abs(gain[bound]) for bound in ("low", "high"))
    word = "better" if gain["mean"] > 0 else "worse"
    return (
        f"{other} is {100 * abs(gain['mean']):.1f} points {word} than {first} ({size[0]:.1f} to {size[1]:.1f}) "
        f"{where}; {cost}."
    )


def _tasks(gain: Mapping[str, Any]) -> str:
    return f"on {gain['num_tasks']:,} tasks" if gain["paired"] else "on different tasks"


def _cost(table: Mapping[str, Any], place: int) -> str:
    first, other = (table["results"][number].get("seconds") for number in (0, place))
    return f"{times(other / first)} the time" if first and other else "an unknown time"


def difference_chart(table: Mapping[str, Any]) -> Markup:
    """Draw the differences from the first run with their intervals; empty if none is known."""
    others = table["runs"][1:]
    series = [
        Series(POLICY_LABELS[name], _differences(of_each), POLICY_LOOKS[name])
        for name, of_each in table["differences"].items()
    ]
    known = [one for one in series if one.points]
    if not known:
        return Markup()
    title = f"Difference in real success from {table['runs'][0]}, by run and policy"
    return forest(title, others, known, "difference in real success (points)", reference=0)


def _differences(of_each: Sequence[Mapping[str, Any] | None]) -> list[Point]:
    return [share_point(row, gain["mean"], gain["low"], gain["high"]) for row, gain in enumerate(of_each) if gain]


def success_chart(table: Mapping[str, Any]) -> Markup:
    """Draw the real success of every run's policies with their intervals; empty if none was evaluated."""
    series = [
        Series(label, _successes(table["results"], name), POLICY_LOOKS[name]) for name, label in POLICY_LABELS.items()
    ]
    known = [one for one in series if one.points]
    if not known:
        return Markup()
    return forest("Real success of each run, by policy", table["runs"], known, "real success (%)")


def _successes(results: Sequence[Mapping[str, Any]], name: str) -> list[Point]:
    known = [(row, one[name]) for row, one in enumerate(results) if name in one]
    return [share_point(row, one["real_success"], *one["interval"]) for row, one in known]
