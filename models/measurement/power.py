"""Power of the gate: how often a true gain passes, and how many real episodes that takes."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from scipy.stats import multivariate_normal, norm

from schemas.recipes.recipe import GateRecipe

_MOST_EPISODES, _MOST_TASKS = 32, 100_000
_SAMPLED = 0.4
"""Temperature at which further episodes of a task are suggested to a policy that is greedy."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What the test tasks can show, and what would show more."""

    power: float
    """Share of nights in which the gain passes with what is played."""
    episodes_per_task: int | None
    """Least episodes of each task that reach the wanted power; None if as many as can be played do not."""
    num_tasks: int | None
    """Least tasks that do, played as often as they are."""
    sentence: str
    """The same in words."""


def power(
    num_tasks: int, episodes_per_task: int, temperature: float, start_success: float, gain: float, asked: GateRecipe
) -> float:
    """Chance that a true gain is promoted over the start, and over a champion that equals the start.

    Normal approximation. A task's success is spread over tasks as Beta with concentration 1, and the gain wins the same
    share of what is lost on each; a greedy policy's episodes of a task are all the same.

    Args:
        num_tasks: Test tasks.
        episodes_per_task: Of each policy.
        temperature: 0 is greedy.
        start_success: Mean success of the starting policy, between 0 and 1.
        gain: In mean success, at most what is lost.
        asked: Thresholds; families and dreams are taken to pass.

    Raises:
        ValueError: the gain is more than the start leaves to be gained.
    """
    if not 0 <= gain <= 1 - start_success + 1e-9:
        raise ValueError(f"a start of {start_success:.1%} leaves no gain of {gain:.1%}")
    episodes = episodes_per_task if temperature > 0 else 1
    its, mine, spread = _variances(start_success, gain)
    variance, shared = (its + mine) / episodes + spread, mine / episodes + spread
    if variance == 0:
        return float(gain > 0)
    error, luck = sqrt(variance / num_tasks), float(norm.isf(asked.false_promotion_rate))
    if num_tasks <= luck**2:
        return 0.0
    over_start = (gain + asked.margin) / error - norm.isf(0.025)
    over_champion = gain / error - luck * sqrt(num_tasks / (num_tasks - luck**2))  # sign flips: variance about 0
    covariance: Any = [[1, shared / variance], [shared / variance, 1]]
    return float(multivariate_normal.cdf([over_start, over_champion], cov=covariance))


def _variances(start_success: float, gain: float) -> tuple[float, float, float]:
    """Per task: of one episode of the start, of one of the candidate, and of the gain itself."""
    lost, spread = 1 - start_success, start_success * (1 - start_success) / 2
    kept = max(0.0, 1 - gain / lost) if lost else 1.0
    candidate = kept * lost - kept**2 * (lost**2 + spread)
    return spread, candidate, (1 - kept) ** 2 * spread


def advice(
    num_tasks: int,
    episodes_per_task: int,
    temperature: float,
    start_success: float,
    gain: float,
    asked: GateRecipe,
    wanted: float = 0.8,
) -> Advice:
    """How often a gain passes, and the least episodes or tasks with which it passes as often as wanted.

    Args and Raises: as `power`.
    """
    sampled = temperature or _SAMPLED

    def with_episodes(count: int) -> float:
        return power(num_tasks, count, sampled, start_success, gain, asked)

    def with_tasks(count: int) -> float:
        return power(count, episodes_per_task, temperature, start_success, gain, asked)

    reached = with_tasks(num_tasks)
    episodes = next((count for count in range(1, _MOST_EPISODES + 1) if with_episodes(count) >= wanted), None)
    tasks = _least_tasks(with_tasks, wanted)
    return Advice(
        reached,
        episodes,
        tasks,
        _sentence(num_tasks, episodes_per_task, gain, reached, wanted, _ways(episodes, sampled, tasks)),
    )


def _least_tasks(with_tasks: Callable[[int], float], wanted: float) -> int | None:
    """The least multiple of ten that reaches the power, by bisection."""
    low, high = 0, _MOST_TASKS // 10
    if with_tasks(10 * high) < wanted:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if with_tasks(10 * middle) >= wanted else (middle, high)
    return 10 * high


def _ways(episodes: int | None, temperature: float, tasks: int | None) -> list[str]:
    """What reaches the wanted power, in words."""
    ways = [f"play each task {episodes} times at temperature {temperature:g}"] if episodes else []
    return [*ways, *([f"{tasks:,} tasks"] if tasks else [])]


def _sentence(num_tasks: int, episodes: int, gain: float, reached: float, wanted: float, ways: list[str]) -> str:
    played = f", each played {episodes} times," if episodes > 1 else ""
    said = f"with {num_tasks:,} tasks{played} a gain of {100 * gain:.3g} points passes {reached:.0%} of the time"
    return f"{said}; for {wanted:.0%} {', or '.join(ways)}" if reached < wanted and ways else said
