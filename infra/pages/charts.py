"""Charts as inline SVG: drawn by Matplotlib, coloured by the style of the page, equal bytes for equal numbers.

Text stays text, so that it can be read aloud, searched and copied. Colours become CSS variables, which the page sets
for light and dark.
"""

import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {
    "#000000": "currentColor",
    "#bfbfbf": "var(--line)",
    "#0072b2": "var(--blue)",
    "#d55e00": "var(--vermillion)",
    "#009e73": "var(--green)",
    "#cc79a7": "var(--purple)",
    "#767676": "var(--grey)",
    "#ffffff": "var(--card)",
}
"""Colour as it is drawn, and as the page defines it."""
_WIDTH = 5.0
"""Width in inches of 72 points: text of 11 points is readable on a phone, where a chart is as wide as the page."""
_LEGEND_LINE = 36
"""Number of characters in three labels that fit side by side."""
_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#bfbfbf",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#bfbfbf",
    "grid.linewidth": 0.5,
    "xtick.color": "#bfbfbf",
    "ytick.color": "#bfbfbf",
    "xtick.labelcolor": "#000000",
    "ytick.labelcolor": "#000000",
    "hatch.linewidth": 0.7,
    "hatch.color": "#ffffff",
    "legend.frameon": False,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.2,
}


@dataclass(frozen=True, slots=True)
class Look:
    """Appearance of a series; no two looks differ by colour alone."""

    colour: str
    marker: str
    dash: str
    hatch: str
    hollow: bool = False


REAL = Look("#0072b2", "o", "-", "")
DREAM = Look("#d55e00", "D", "--", "///")
THIRD = Look("#009e73", "s", "-.", "--")
FOURTH = Look("#cc79a7", "^", ":", "xx")
NEUTRAL = Look("#767676", "o", ":", "\\\\", hollow=True)
POLICY_LOOKS = {"start": NEUTRAL, "dream": REAL, "champion": FOURTH, "sim_to_real": THIRD}


@dataclass(frozen=True, slots=True)
class Point:
    """Value at a place on the other axis, with its interval if it has one."""

    at: float
    value: float
    low: float | None = None
    high: float | None = None


def share_point(at: float, share: float, *interval: float) -> Point:
    """Return a share, and its interval if it has one, in percent."""
    return Point(at, 100 * share, *(100 * bound for bound in interval))


@dataclass(frozen=True, slots=True)
class Series:
    """Points with one label and one look."""

    label: str
    points: Sequence[Point]
    look: Look = REAL


def forest(
    title: str, rows: Sequence[str], series: Sequence[Series], axis: str, reference: float | None = None
) -> Markup:
    """Draw estimates with intervals, one row each from top to bottom; `Point.at` is the number of the row.

    Args:
        title: Description for readers who do not see the chart.
        rows: Names of the rows.
        series: Estimates; those of several series in one row are drawn below each other.
        axis: Title of the axis, with its unit.
        reference: Value of a vertical line, such as no difference.
    """
    with _canvas(title, 0.75 + 0.34 * len(rows) * max(1, len(series) * 0.7)) as (axes, chart):
        for number, one in enumerate(series):
            _draw_estimates(axes, one, (number - (len(series) - 1) / 2) * 0.26)
        if reference is not None:
            axes.axvline(reference, color="#000000", linewidth=1, dashes=(3, 3))
        axes.set_yticks(range(len(rows)), [textwrap.fill(row, 22) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(axis)
        _add_legend(axes, len(series) > 1)
    return chart()


def _draw_estimates(axes: "Axes", series: Series, below: float) -> None:
    for at, low, high in _intervals(series):
        axes.hlines(at + below, low, high, color=series.look.colour, linewidth=2.2)
    x, y = [one.value for one in series.points], [one.at + below for one in series.points]
    axes.plot(x, y, linestyle="", label=series.label, **_marker(series.look))


def _intervals(series: Series) -> list[tuple[float, float, float]]:
    """Return place, low and high of the points that have an interval."""
    return [(one.at, one.low, one.high) for one in series.points if one.low is not None and one.high is not None]


def _marker(look: Look) -> dict[str, Any]:
    fill = "#ffffff" if look.hollow else look.colour
    return {"marker": look.marker, "markersize": 6.5, "color": look.colour, "markerfacecolor": fill}


def line_chart(
    title: str,
    series: Sequence[Series],
    x_axis: str,
    y_axis: str,
    ticks: Mapping[float, str] | None = None,
    reference: float | None = None,
    stars: Sequence[Point] = (),
) -> Markup:
    """Draw lines over rounds or runs, with intervals where points have them.

    Args:
        title: Description for readers who do not see the chart.
        series: Lines.
        x_axis: Title of the horizontal axis.
        y_axis: Title of the vertical axis, with its unit.
        ticks: Labels of the horizontal axis by place; empty: whole numbers.
        reference: Value of a horizontal line, such as no difference.
        stars: Points to mark by a star.
    """
    with _canvas(title, 2.9) as (axes, chart):
        if reference is not None:
            axes.axhline(reference, color="#000000", linewidth=1, dashes=(3, 3))
        for one in series:
            _draw_line(axes, one)
        if stars:
            x, y = [one.at for one in stars], [one.value for one in stars]
            axes.plot(x, y, linestyle="", marker="*", markersize=15, color="#000000", markerfacecolor="#ffffff")
        _leave_out_impossible(axes, [point.value for one in series for point in one.points], y_axis)
        _name_axes(axes, x_axis, y_axis, ticks)
        _add_legend(axes, len(series) > 1)
    return chart()


def _draw_line(axes: "Axes", series: Series) -> None:
    x, y = [one.at for one in series.points], [one.value for one in series.points]
    known = _intervals(series)
    for at, low, high in known:
        axes.vlines(at, low, high, color=series.look.colour, linewidth=1.4)
    crowded = len(x) > 12 and not known
    look: dict[str, Any] = {**_marker(series.look), **({"markersize": 3.5} if crowded else {})}
    axes.plot(x, y, linestyle=series.look.dash, linewidth=1.5, label=series.label, **look)


def _leave_out_impossible(axes: "Axes", values: Sequence[float], y_axis: str) -> None:
    """Shorten the vertical axis where it goes below zero or above 100%, and no value can."""
    bottom, top = axes.get_ylim()
    margin = 0.03 * (top - bottom)
    if values and min(values) >= 0 and "points" not in y_axis:
        axes.set_ylim(bottom=max(bottom, -margin))
    if y_axis.endswith("(%)"):
        axes.set_ylim(top=min(top, 100 + margin))


def stacked_bars(
    title: str, series: Sequence[Series], x_axis: str, y_axis: str, ticks: Mapping[float, str] | None = None
) -> Markup:
    """Draw counts as bars on top of each other; all series have the same places. The arguments are a line chart's."""
    with _canvas(title, 2.7) as (axes, chart):
        below = [0.0] * len(series[0].points)
        for one in series:
            heights = [point.value for point in one.points]
            at = [point.at for point in one.points]
            hatch = one.look.hatch if len(series) > 1 else ""
            axes.bar(at, heights, 0.8, bottom=below, label=one.label, color=one.look.colour, hatch=hatch)
            below = [low + height for low, height in zip(below, heights, strict=True)]
        _name_axes(axes, x_axis, y_axis, ticks)
        axes.grid(visible=False, axis="x")
        _add_legend(axes, len(series) > 1)
    return chart()


def histogram(title: str, layers: Sequence[tuple[str, Sequence[float], Look]], x_axis: str, y_axis: str) -> Markup:
    """Draw how many values lie in each of ten ranges, layer on layer.

    Args:
        title: Description for readers who do not see the chart.
        layers: Label, values and look of each.
        x_axis: Title of the horizontal axis, with its unit.
        y_axis: Title of the vertical axis.
    """
    with _canvas(title, 2.7) as (axes, chart):
        labels, values, looks = zip(*layers, strict=True)
        colours, hatches = [one.colour for one in looks], [one.hatch for one in looks]
        axes.hist(values, bins=10, stacked=True, label=labels, color=colours, hatch=hatches, rwidth=0.92)
        axes.set(xlabel=x_axis, ylabel=y_axis)
        axes.grid(visible=False, axis="x")
        _add_legend(axes, len(layers) > 1)
    return chart()


def long_bars(title: str, lengths: Mapping[str, float], axis: str) -> Markup:
    """Draw one horizontal bar per name, from top to bottom.

    Args:
        title: Description for readers who do not see the chart.
        lengths: Length by name.
        axis: Title of the axis, with its unit.
    """
    labels = [textwrap.fill(name, 22) for name in lengths]
    rooms = [1 + 0.5 * label.count("\n") for label in labels]  # so that labels of two lines do not overlap
    middles = [end - room / 2 for end, room in zip(accumulate(rooms), rooms, strict=True)]
    with _canvas(title, 0.7 + 0.26 * sum(rooms)) as (axes, chart):
        axes.barh(middles, list(lengths.values()), 0.7, color=REAL.colour)
        axes.set_yticks(middles, labels)
        axes.set_ylim(sum(rooms) + 0.1, -0.1)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(axis)
    return chart()


def _name_axes(axes: "Axes", x_axis: str, y_axis: str, ticks: Mapping[float, str] | None) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set(xlabel=x_axis, ylabel=y_axis)
    if ticks:
        axes.set_xticks(list(ticks), list(ticks.values()))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _add_legend(axes: "Axes", wanted: bool) -> None:
    if wanted:
        labels = axes.get_legend_handles_labels()[1]
        axes.figure.legend(loc="outside upper left", ncols=3 if sum(map(len, labels)) <= _LEGEND_LINE else 2)


@contextmanager
def _canvas(title: str, height: float) -> Iterator[tuple["Axes", Any]]:
    """Yield axes to draw on, and a function that returns the chart once the drawing is over."""
    from matplotlib import style  # importing it takes a second
    from matplotlib.figure import Figure

    drawn: list[Markup] = []
    with style.context(["default", _STYLE | {"svg.hashsalt": title}]):
        figure = Figure((_WIDTH, height), layout="constrained")
        yield figure.subplots(), lambda: drawn[0]
        drawn.append(_svg(figure, title))


def _svg(figure: "Figure", title: str) -> Markup:
    written = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(written, format="svg", transparent=True, metadata=nothing)
    width, height = (round(72 * inches) for inches in figure.get_size_inches())
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">'
    return Markup(head + _plain(written.getvalue()))  # noqa: S704 - Matplotlib escapes the text in its drawings


def _plain(svg: str) -> str:
    """Return a drawing's contents without declarations, names of parts and fonts, in the colours of the page."""
    body = re.sub(r"^.*?<svg[^>]*>|<style.*?</style>", "", svg, flags=re.DOTALL)
    body = re.sub(r'<g id="[^"]*">', "<g>", body)
    body = re.sub(r"font: ([\d.]+px)[^;\"]*|font-size: ([\d.]+px); font-family: [^;\"]*", r"font-size: \1\2", body)
    body = re.sub(r' transform="rotate\(-0 [^"]*"', "", body)
    body = re.sub(r'\b(?:d|x|y)="[^"]*"', lambda found: re.sub(r"(\.\d)\d+", r"\1", found[0]), body)
    body = re.sub(r"\s*\n\s*", "\n", body)
    return re.sub("|".join(_COLOURS), lambda found: _COLOURS[found[0]], body)
