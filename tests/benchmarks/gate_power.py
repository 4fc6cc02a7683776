"""Power of the gate: how often the shipped recipes promote a true gain, and how often luck.

    python -m tests.benchmarks.gate_power

Runs the real `judge` and `judge_succession` on outcomes that `tests.simulated` simulates. Each recipe has its own
number of tasks, episodes, families and thresholds, and the measured success of its start (40% for the GPU recipes,
which was not measured). Dreams are taken to hold.

- Gains of 0 to 15 points: a candidate against its start, and against a champion that equals the start.
- False promotions: series of 30 nights on which every candidate equals the champion, and both are 10 points better than
  the start, so that the comparison with the start holds nobody back. All policies of a night are played anew, on fresh
  tasks where there are endless ones. Equal champions differ in nothing but their name, so the nights of a series are
  alike.
- Errors: a new champion's success as measured when it was chosen and on the night after, minus its true one.
- Designs: the same comparison on one panel, on two that must both be passed, and on two that are judged together if the
  first is promising.
"""

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from flows.planning.load_recipe import load_recipe
from models.measurement.gate import judge, judge_succession
from models.measurement.significance import sign_flip
from schemas.recipes.judging import GateRecipe
from tests.simulated import PERFECT, TestTasks, by_task

STARTS = {
    "textworld-tiny": 0.75,
    "textworld-small": 0.695,
    "miniwob-tiny": 0.68,
    "alfworld-tiny": 0.28,
    "scienceworld-tiny": 0.033,
    "qwen3-0.6b-lora-1gpu": 0.4,
    "qwen2.5-7b-alfworld": 0.4,
    "alfworld-8b": 0.4,
    "llama-3.1-8b-webshop": 0.4,
}
"""Real success of the starting policy by recipe."""

_GAINS = (0.0, 0.05, 0.1, 0.15)
_NUM_JUDGEMENTS, _NUM_SERIES, _NUM_NIGHTS = 800, 2_000, 30
_EQUAL_GAIN = 0.1
"""Gain of candidates and champions over the start in a series of equal ones."""
_HOPELESS = 2.0
"""Standard deviations below which no sum of sign flips is rare enough for a promotion.

Nights below it are not judged in full.
"""


class Errors(NamedTuple):
    """Measured minus true success of a new champion."""

    when_chosen: float
    night_after: float


@dataclass
class Cell:
    """Results of the judgements of one gain."""

    over_start: list[bool]
    over_both: list[bool]
    errors: list[Errors]
    """Errors of the candidates promoted over both."""


def main() -> None:
    """Print the tables."""
    gains = " | ".join(f"+{100 * gain:.0f}" for gain in _GAINS)
    print(f"| recipe | tasks x episodes | {gains} | false promotions | gained: chosen, after | lucky: chosen, after |")
    print(f"|---|---|{'---|' * len(_GAINS)}---|---|---|")
    for name, start in STARTS.items():
        recipe = load_recipe(name)
        print(_row(name, TestTasks.of(recipe, start), recipe.gate), flush=True)
    print(
        "\nShares promoted over the start / over it and a champion that equals it; series with a false promotion; measured"
    )
    print("minus true success of those who gained, and of those who were lucky, in points, with standard errors.\n")
    _print_designs()


def _row(name: str, tasks: TestTasks, asked: GateRecipe) -> str:
    random = np.random.default_rng(0)
    cells = [cell(random, tasks, asked, gain) for gain in _GAINS]
    lucky = [one for _ in range(_NUM_SERIES) if (one := false_promotion(random, tasks, asked))]
    size = f"{tasks.num_tasks} x {tasks.episodes_per_task}, {'fresh' if tasks.fresh else 'the same'} each night"
    shares = [f"{fmean(one.over_start):.0%} / {fmean(one.over_both):.0%}" for one in cells]
    gained = [error for one in cells for error in one.errors]
    return f"| {' | '.join([name, size, *shares, f'{len(lucky) / _NUM_SERIES:.1%}', told(gained), told(lucky)])} |"


def cell(random: np.random.Generator, tasks: TestTasks, asked: GateRecipe, gain: float) -> Cell:
    """Judge a candidate with a true gain many times."""
    found = Cell([], [], [])
    for chances in tasks.chances(random, _NUM_JUDGEMENTS):
        better = tasks.gained(chances, gain)
        candidate, start, champion = (tasks.played(random, one) for one in (better, chances, chances))
        over_start = passes_over_start(candidate, start, tasks, asked)
        over_both = over_start and succeeds(candidate, champion, tasks, asked)
        found.over_start.append(over_start)
        found.over_both.append(over_both)
        if over_both:
            found.errors.append(errors_of(random, tasks, gain, candidate, better))
    return found


def false_promotion(random: np.random.Generator, tasks: TestTasks, asked: GateRecipe) -> Errors | None:
    """Return the errors of the first promotion, in a series of nights, of a candidate that equals the champion.

    None if there is none.
    """
    chances = tasks.chances(random, _NUM_NIGHTS if tasks.fresh else 1)
    equal = np.broadcast_to(tasks.gained(chances, _EQUAL_GAIN), (_NUM_NIGHTS, tasks.num_tasks))
    candidates, champions = tasks.played(random, equal), tasks.played(random, equal)
    starts = tasks.played(random, np.broadcast_to(chances, equal.shape))
    changes = candidates - champions
    for night in np.flatnonzero(changes.sum(axis=1) > _HOPELESS * np.sqrt((changes**2).sum(axis=1))):
        candidate = candidates[night]
        if succeeds(candidate, champions[night], tasks, asked) and passes_over_start(
            candidate, starts[night], tasks, asked
        ):
            return errors_of(random, tasks, _EQUAL_GAIN, candidate, equal[night])
    return None


def passes_over_start(candidate: np.ndarray, start: np.ndarray, tasks: TestTasks, asked: GateRecipe) -> bool:
    """Return whether the gate lets the candidate through."""
    return judge(by_task(candidate), by_task(start), tasks.family_of, PERFECT, asked).passed


def succeeds(candidate: np.ndarray, champion: np.ndarray, tasks: TestTasks, asked: GateRecipe) -> bool:
    """Return whether the candidate may replace the champion."""
    return judge_succession(by_task(candidate), by_task(champion), tasks.family_of, asked).passed


def errors_of(
    random: np.random.Generator, tasks: TestTasks, gain: float, measured: np.ndarray, chances: np.ndarray
) -> Errors:
    """Return the measured minus the true success of a policy that was just promoted, then and on the night after."""
    later = tasks.gained(tasks.chances(random, 1)[0], gain) if tasks.fresh else chances
    true = tasks.start_success + gain if tasks.fresh else chances.mean()
    return Errors(float(measured.mean() - true), float(tasks.played(random, later).mean() - true))


def told(errors: list[Errors]) -> str:
    """Format the means of both errors."""
    return f"{points([one.when_chosen for one in errors])}, {points([one.night_after for one in errors])}"


def points(errors: list[float]) -> str:
    """Format the mean difference in points, with its standard error."""
    if len(errors) < 2:
        return "none"
    return f"{100 * fmean(errors):+.2f} ± {100 * stdev(errors) / len(errors) ** 0.5:.2f}"


def _print_designs() -> None:
    rate, promising, num_judgements = GateRecipe().false_promotion_rate, 0.1, 2_000
    print("| design, greedy from 75% | +0 | +5 | +7 | +10 |")
    print("|---|---|---|---|---|")
    designs = {
        "one panel of 800": (800, 0, 1.0, rate, 1.0),
        "two of 400, both passed": (400, 400, rate**0.5, 1.0, rate**0.5),
        "two of 400, judged together": (400, 400, promising, rate, 1.0),
        "two of 750, both passed": (750, 750, rate**0.5, 1.0, rate**0.5),
        "two of 725, judged together": (725, 725, promising, rate, 1.0),
    }
    for name, design in designs.items():
        random = np.random.default_rng(0)
        cells = [_design_cell(random, gain, num_judgements, *design) for gain in (0.0, 0.05, 0.07, 0.1)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print("\nShare promoted, and tasks played by each policy on the mean.")


def _design_cell(
    random: np.random.Generator,
    gain: float,
    num_judgements: int,
    first: int,
    second: int,
    level_first: float,
    level_together: float,
    level_second: float,
) -> str:
    passed, num_played = 0, 0
    tasks = TestTasks(first + second, 1, ("f",), 0.75, fresh=True)
    for chances in tasks.chances(random, num_judgements):
        changes = tasks.played(random, tasks.gained(chances, gain)) - tasks.played(random, chances)
        goes_on = sign_flip(changes[:first]) <= level_first
        num_played += first + second * goes_on
        passed += (
            goes_on
            and sign_flip(changes) <= level_together
            and (sign_flip(changes[first:]) <= level_second or not second)
        )
    return f"{passed / num_judgements:.1%} ({num_played / num_judgements:.0f})"


if __name__ == "__main__":
    main()
