"""Charts of the details: learning, groups, calibration, curriculum."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from infra.pages.charts import (
    DREAM,
    FOURTH,
    NEUTRAL,
    REAL,
    THIRD,
    Look,
    Point,
    Series,
    histogram,
    line_chart,
    stacked_bars,
)
from schemas.records import AgentTask

Measured = Sequence[Mapping[str, Any]]
_REASONS: tuple[tuple[str, str, Look], ...] = (
    ("groups_all_succeeded", "all succeed", REAL),
    ("groups_all_failed", "all fail", DREAM),
    ("groups_broken", "broken", NEUTRAL),
)


def figures(rounds: Measured, calibrations: Measured) -> Iterator[tuple[Markup, str]]:
    """Yield the charts of a training with their captions."""
    if rounds:
        yield (
            _learning(rounds, calibrations),
            "Success in the dream of each round's training groups, and real success on valid tasks where it was "
            "measured, with 95% intervals.",
        )
        yield _groups(rounds), "Groups that teach nothing, by reason: every episode has the same reward, or broke."
        yield (
            _entropy(rounds),
            "Mean reward entropy of the groups: 0.25 if half of the episodes succeed, 0 if none or all do.",
        )
    if any("outcome_agreement" in one for one in calibrations):
        yield (
            _agreement(calibrations),
            "Valid tasks: share of dreamt outcomes and states that the real replay confirms.",
        )
        yield (
            _gap(calibrations),
            "Valid tasks: above zero, the dream is kinder than the real environment; below, harsher.",
        )


def _series(label: str, measured: Measured, key: str, look: Look, first: int = 1, scale: float = 100) -> Series:
    """Return a line over rounds; a measurement without a round of its own is at its place in the list."""
    points = [
        Point(one.get("round", place), scale * one[key]) for place, one in enumerate(measured, first) if key in one
    ]
    return Series(label, points, look)


def _learning(rounds: Measured, calibrations: Measured) -> Markup:
    real = [
        Point(one["round"], *(100 * one[key] for key in ("real_success", "interval_low", "interval_high")))
        for one in calibrations
        if "real_success" in one
    ]
    lines = [_series("dream, training groups", rounds, "dream_success", DREAM)]
    lines += [Series("real, valid tasks", real, REAL)] if real else []
    if calibrations and not real:
        lines.append(_series("dream, valid tasks", calibrations, "dream_success", FOURTH))
    return line_chart("Success by training round, in the dream and for real", lines, "round", "success (%)")


def _groups(rounds: Measured) -> Markup:
    layers = [
        Series(label, [Point(place, one.get(key, 0)) for place, one in enumerate(rounds, 1)], look)
        for key, label, look in _REASONS
    ]
    return stacked_bars("Groups without a lesson by round and reason", layers, "round", "groups")


def _entropy(rounds: Measured) -> Markup:
    line = _series("mean reward entropy", rounds, "reward_entropy", THIRD, scale=1)
    return line_chart("Mean reward entropy by round", [line], "round", "reward entropy")


def _agreement(calibrations: Measured) -> Markup:
    lines = [
        _series("outcomes agree", calibrations, "outcome_agreement", THIRD),
        _series("states agree", calibrations, "state_agreement", FOURTH),
    ]
    return line_chart("Agreement of dream and real by round", lines, "round", "agreement (%)")


def _gap(calibrations: Measured) -> Markup:
    line = _series("dream minus real success", calibrations, "dream_real_gap", DREAM)
    return line_chart("Dream minus real success by round", [line], "round", "dream minus real (points)", reference=0)


def curriculum(tasks: Sequence[AgentTask], entropies: Mapping[str, float]) -> Markup:
    """Draw how many tasks have which reward entropy, own and generated ones."""
    own = [entropies[one.task_id] for one in tasks if one.task_id in entropies and not one.generated]
    generated = [entropies[one.task_id] for one in tasks if one.task_id in entropies and one.generated]
    layers = [("the environment's own", own, REAL), ("generated", generated, DREAM)]
    return histogram("Number of tasks by latest reward entropy", layers, "latest reward entropy", "tasks")
