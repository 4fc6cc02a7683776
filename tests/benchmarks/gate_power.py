"""Power of the gate: how often the shipped recipes promote a true gain, and how often luck.

    python -m tests.benchmarks.gate_power

The real `judge` and `judge_succession` on outcomes that are simulated as `tests.simulated` says, with each recipe's own number
of tasks, episodes, families and thresholds, and the success that its start was measured at (40% of the recipes for GPUs, which
was not measured). Dreams are taken to hold.

- A gain of 0 to 15 points: a candidate against its start, and against a champion that equals the start.
- False promotions: series of 30 nights on which every candidate equals the champion, and both are 10 points better than the
  start, so that the comparison with the start holds nobody back. All policies of a night are played anew, on fresh tasks where
  there are endless ones. Equal champions change nothing but their name, and so the nights of a series are alike.
- A new champion's success as it was measured when it was chosen, and as it is measured the night after, minus its true one.
- Designs: the same comparison on one panel, on two that must both be passed, and on two that are judged together if the
  first is promising.
"""

from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np

from flows.load_recipe import load_recipe
from models.gate import judge, judge_succession
from models.significance import sign_flip
from schemas.recipe import GateRecipe
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
_NUM_JUDGEMENTS, _NUM_SERIES, _NUM_NIGHTS = 400, 1_000, 30
_HOPELESS = 2.0
"""Standard deviations below which no sum of sign flips is rare enough to be promoted: such nights are not judged at length."""


@dataclass
class Cell:
    """What became of the judgements of one gain."""

    over_start: list[bool]
    over_champion: list[bool]
    when_chosen: list[float]
    """Measured minus true success of those promoted over both."""
    night_after: list[float]


def main() -> None:
    """Print the tables."""
    print("| recipe | tasks x episodes | +0 | +5 | +10 | +15 | series with a false promotion | chosen at | night after |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, start in STARTS.items():
        recipe = load_recipe(name)
        print(_row(name, TestTasks.of(recipe, start), recipe.gate), flush=True)
    print("\nShares promoted over the start / over a champion that equals it; differences in points, with standard errors.\n")
    _print_designs()


def _row(name: str, tasks: TestTasks, asked: GateRecipe) -> str:
    random = np.random.default_rng(0)
    cells = [cell(random, tasks, asked, gain) for gain in _GAINS]
    shares = [f"{fmean(one.over_start):.0%} / {fmean(one.over_champion):.0%}" for one in cells]
    lucky = fmean(has_false_promotion(random, tasks, asked, _NUM_NIGHTS) for _ in range(_NUM_SERIES))
    size = f"{tasks.num_tasks} x {tasks.episodes_per_task}, {'fresh' if tasks.fresh else 'the same'} each night"
    chosen = points([error for one in cells for error in one.when_chosen])
    after = points([error for one in cells for error in one.night_after])
    return f"| {' | '.join([name, size, *shares, f'{lucky:.1%}', chosen, after])} |"


def cell(random: np.random.Generator, tasks: TestTasks, asked: GateRecipe, gain: float) -> Cell:
    """Judge a candidate with a true gain many times."""
    found = Cell([], [], [], [])
    for chances in tasks.chances(random, _NUM_JUDGEMENTS):
        better = tasks.gained(chances, gain)
        candidate, start, champion = (tasks.played(random, one) for one in (better, chances, chances))
        over_start = judge(by_task(candidate), by_task(start), tasks.family_of, PERFECT, asked).passed
        over_champion = judge_succession(by_task(candidate), by_task(champion), tasks.family_of, asked).passed
        found.over_start.append(over_start)
        found.over_champion.append(over_champion)
        if over_start and over_champion:
            later = tasks.gained(tasks.chances(random, 1)[0], gain) if tasks.fresh else better
            true = tasks.start_success + gain if tasks.fresh else better.mean()
            found.when_chosen.append(candidate.mean() - true)
            found.night_after.append(tasks.played(random, later).mean() - true)
    return found


def has_false_promotion(random: np.random.Generator, tasks: TestTasks, asked: GateRecipe, num_nights: int) -> bool:
    """Whether any night of a series promotes a candidate that equals the champion."""
    chances = tasks.chances(random, num_nights if tasks.fresh else 1)
    equal = np.broadcast_to(tasks.gained(chances, 0.1), (num_nights, tasks.num_tasks))
    candidates, champions = tasks.played(random, equal), tasks.played(random, equal)
    starts = tasks.played(random, np.broadcast_to(chances, equal.shape))
    changes = candidates - champions
    hopeful = changes.sum(axis=1) > _HOPELESS * np.sqrt((changes**2).sum(axis=1))
    return any(
        judge_succession(by_task(candidates[night]), by_task(champions[night]), tasks.family_of, asked).passed
        and judge(by_task(candidates[night]), by_task(starts[night]), tasks.family_of, PERFECT, asked).passed
        for night in np.flatnonzero(hopeful)
    )


def points(errors: list[float]) -> str:
    """Mean difference in points, with its standard error."""
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
            goes_on and sign_flip(changes) <= level_together and (sign_flip(changes[first:]) <= level_second or not second)
        )
    return f"{passed / num_judgements:.1%} ({num_played / num_judgements:.0f})"


if __name__ == "__main__":
    main()
