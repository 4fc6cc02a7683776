"""Power of the gate: how often a true gain passes, and how many real episodes that takes."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from scipy.stats import multivariate_normal, norm

from schemas.recipes.judging import GateRecipe

_MOST_EPISODES, _MOST_TASKS = 32, 100_000
_SAMPLED = 0.4
"""Temperature that is suggested for further episodes of a task if the policy is greedy."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Power of the test tasks, and ways to increase it."""

    power: float
    """Share of runs in which the gain passes with the present tasks and episodes."""
    episodes_per_task: int | None
    """Minimum number of episodes per task that reaches the wanted power; None if the maximum does not."""
    num_tasks: int | None
    """Minimum number of tasks that does, with the present episodes per task; None if the maximum does not."""
    sentence: str
    """Summary in words."""


def power(
    num_tasks: int, episodes_per_task: int, temperature: float, start_success: float, gain: float, asked: GateRecipe
) -> float:
    """Return the chance that a true gain is promoted over the start, and over a champion that equals the start.

    Normal approximation. A task's success is spread over tasks as Beta with concentration 1, and the gain wins the same
    share of the losses on each task. A greedy policy's episodes of a task are all the same.

    Args:
        num_tasks: Number of test tasks.
        episodes_per_task: Number of episodes of each policy per task.
        temperature: Sampling temperature; 0 is greedy.
        start_success: Mean success of the starting policy, between 0 and 1.
        gain: Gain in mean success, at most 1 - start_success.
        asked: Thresholds; families and dreams are assumed to pass.

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
    over_champion = gain / error - luck * sqrt(num_tasks / (num_tasks - luck**2))  # sign flips use the variance about 0
    covariance: Any = [[1, shared / variance], [shared / variance, 1]]
    return float(multivariate_normal.cdf([over_start, over_champion], cov=covariance, allow_singular=True))


def _variances(start_success: float, gain: float) -> tuple[float, float, float]:
    """Return variances per task: of one episode of the start, of one of the candidate, and of the gain itself."""
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
    """Return how often a gain passes, and the fewest episodes or tasks with which it passes as often as wanted.

    Args and Raises: as `power`; `wanted` is the power to reach.
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
    """Return the least multiple of ten that reaches the power, by bisection; None if the maximum does not."""
    low, high = 0, _MOST_TASKS // 10
    if with_tasks(10 * high) < wanted:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if with_tasks(10 * middle) >= wanted else (middle, high)
    return 10 * high


def _ways(episodes: int | None, temperature: float, tasks: int | None) -> list[str]:
    """Return the ways to reach the wanted power, in words."""
    ways = [f"play each task {episodes} times at temperature {temperature:g}"] if episodes else []
    return [*ways, *([f"{tasks:,} tasks"] if tasks else [])]


def _sentence(num_tasks: int, episodes: int, gain: float, reached: float, wanted: float, ways: list[str]) -> str:
    played = f", each played {episodes} times," if episodes > 1 else ""
    said = f"with {num_tasks:,} tasks{played} a gain of {100 * gain:.3g} points passes {reached:.0%} of the time"
    return f"{said}; for {wanted:.0%} {', or '.join(ways)}" if reached < wanted and ways else said
