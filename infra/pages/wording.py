"""Wording of numbers on pages: shares, intervals, gains, durations, times."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


def percent(share: float | None) -> str:
    """Return a share as percent with one digit, or nothing if it is not known."""
    return "" if share is None else f"{share:.1%}"


def bounds(interval: Sequence[float]) -> str:
    """Return the two bounds of an interval in percent."""
    low, high = interval
    return f"{100 * low:.1f} to {100 * high:.1f}%"


def rate(policy: Mapping[str, Any]) -> str:
    """Return the real success of a policy's results with its interval."""
    low, high = policy["interval"]
    return f"{policy['real_success']:.1%} ({100 * low:.1f} to {100 * high:.1f})"


def points(gain: Mapping[str, float]) -> str:
    """Return a signed gain in percentage points with its interval."""
    mean, low, high = (100 * gain[name] for name in ("mean", "low", "high"))
    return f"{mean:+z.1f} points ({low:+z.1f} to {high:+z.1f})"


def is_shown(gain: Mapping[str, float]) -> bool:
    """Return whether the interval of a gain excludes zero."""
    return gain["low"] > 0 or gain["high"] < 0


def times(ratio: float) -> str:
    """Return a ratio such as 1.3x; two digits below 1, where they matter."""
    return f"{ratio:.2f}x" if ratio < 0.95 else f"{ratio:.1f}x"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units."""
    whole = round(seconds)
    for name, length, smaller, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            return f"{whole // length} {name} {whole % length // part} {smaller}"
    return f"{whole} s"


def count(number: float) -> str:
    """Return a count with separators, from a million on rounded."""
    if number >= 1_000_000:
        return f"{number / 1_000_000:,.1f} million"
    return f"{round(number):,}"


def moment(iso: str) -> str:
    """Return an ISO time as date and minutes; times in records are UTC."""
    return f"{datetime.fromisoformat(iso):%Y-%m-%d %H:%M} UTC" if iso else "not known"


FILTERS = (percent, bounds, rate, points, duration, count, moment)
"""Functions that templates use as filters."""
