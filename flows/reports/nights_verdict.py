"""Verdict on the latest runs: how success moved, who became champion, at what cost; as sentences and as charts."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from markupsafe import Markup

from infra.pages.charts import NEUTRAL, POLICY_LOOKS, THIRD, Point, Series, line_chart, share_point, stacked_bars
from infra.pages.wording import count, duration, percent, rate
from schemas.policies import POLICY_LABELS

_MAX_TICKS = 6
Nights = Sequence[Mapping[str, Any]]


def verdict(shown: Nights) -> str:
    """Return in one sentence how real success moved and which champions were made."""
    moved = _moved([one["policies"]["dream"] for one in shown if "dream" in one["policies"]])
    return f"{moved}; {_champions(shown)}."


def _moved(policies: Sequence[Mapping[str, Any]]) -> str:
    if not policies:
        return "No run trained a policy in the dream"
    if len(policies) == 1:
        return f"Real success after dream training was {rate(policies[0])}"
    return f"Real success after dream training went from {rate(policies[0])} to {rate(policies[-1])}"


def _champions(shown: Nights) -> str:
    made = [one for one in shown if one["promoted"]]
    if not made:
        return "no new champion"
    policy = made[-1]["policies"][made[-1]["promoted"]]
    number = "1 new champion" if len(made) == 1 else f"{len(made)} new champions"
    return f"{number}, the last from {made[-1]['run_id']} with {percent(policy['real_success'])}"


def tiles(shown: Nights) -> list[tuple[str, str]]:
    """Return the most important totals with their names."""
    return [
        (count(sum(bool(one["promoted"]) for one in shown)), "new champions"),
        (duration(median(one["seconds"] for one in shown)), "median time of a run"),
        (count(median(one["tokens"] for one in shown)), "median tokens of a run"),
        (count(sum(one["real_steps"] for one in shown)), "real RL steps in all"),
        (count(shown[-1]["episodes"]), "logged episodes in the last run"),
    ]


def success_charts(shown: Nights) -> list[tuple[Markup, str]]:
    """Return one chart of real success per policy, with its caption; vertical marks show new champions."""
    known = [name for name in POLICY_LABELS if any(name in one["policies"] for one in shown)]
    return [(_success_chart(shown, name), f"{POLICY_LABELS[name]}{_legend(shown, name)}") for name in known]


def _legend(shown: Nights, name: str) -> str:
    crowned = [str(number) for number, one in enumerate(shown, 1) if one["promoted"] == name]
    return f"; new champion in run {', '.join(crowned)} (star)" if crowned else ""


def _success_chart(shown: Nights, name: str) -> Markup:
    known = [(number, one["policies"][name]) for number, one in enumerate(shown, 1) if name in one["policies"]]
    points = [share_point(number, policy["real_success"], *policy["interval"]) for number, policy in known]
    stars = [point for point in points if shown[int(point.at) - 1]["promoted"] == name]
    series = Series(POLICY_LABELS[name], points, POLICY_LOOKS[name])
    title = f"Real success, {POLICY_LABELS[name]}, by run"
    return line_chart(title, [series], "run", "real success (%)", _ticks(shown), stars=stars)


def _ticks(shown: Nights) -> dict[float, str]:
    """Return the number and the day of a few runs, evenly spread, among them the last."""
    every = -(-len(shown) // _MAX_TICKS)
    numbers = range(len(shown), 0, -every)
    return {number: f"{number}\n{shown[number - 1]['started_utc'][5:10]}" for number in numbers}


def cost_charts(shown: Nights) -> list[tuple[Markup, str]]:
    """Return one small chart per cost and one of new data, with captions."""
    bars = (
        ("Time by run", "time (minutes)", [one["seconds"] / 60 for one in shown], NEUTRAL),
        ("Tokens by run", "tokens (millions)", [one["tokens"] / 1_000_000 for one in shown], NEUTRAL),
        ("Real RL steps by run", "real RL steps", [one["real_steps"] for one in shown], NEUTRAL),
        ("Logged episodes by run", "logged episodes", [one["episodes"] for one in shown], THIRD),
    )
    return [
        (stacked_bars(title, [Series(title, _bars(values), look)], "run", axis, _ticks(shown)), title)
        for title, axis, values, look in bars
    ]


def _bars(values: Sequence[float]) -> list[Point]:
    return [Point(number, value) for number, value in enumerate(values, 1)]
