"""Steps per second of an environment and of its dream, 1 to 64 episodes at a time: `make throughput` after a run.

Both are given the actions of the run's own logs; the time to begin an episode is included.
"""

import itertools
import sys
import time
from collections import deque
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from flows.runs.find_run import find_run
from flows.services.serve_experience_model import dream_of
from infra.environments.by_name import open_environment
from infra.progress.progress import Display
from schemas.plain import restored
from schemas.ports import Environment
from schemas.recipes.recipe import Recipe
from schemas.records import AgentTask
from tasks.running.artifacts import get_trajectories
from tasks.running.device import use_threads

Episode = tuple[AgentTask, list[str]]
"""Task and the actions to take."""

_AT_ONCE = (1, 4, 16, 64)
_SECONDS = 20.0
_WARM_UP_SECONDS = 3.0


def main(name: str | None = None) -> None:
    """Print the table for a run; without its id, for the latest."""
    summary = find_run(name)
    served = dream_of(summary, Display())
    use_threads()
    recipe = Recipe.model_validate(summary["recipe"])
    real = open_environment(recipe.environment)
    known = {task.task_id: task for task in served.tasks}
    logged = get_trajectories(restored(summary["lineage"])["logs"])
    episodes = [(known[one.task.task_id], [turn.action for turn in one.turns]) for one in logged]
    table = Table("episodes at a time", "real steps/s", "dreamt steps/s", "ratio", title=summary["run_id"])
    for num_slots in _AT_ONCE:
        found = [_steps_per_second(world, episodes, num_slots) for world in (real, served.environment)]
        table.add_row(str(num_slots), *(f"{rate:,.1f}" for rate in found), f"{found[1] / found[0]:.2f}")
    Console().print(table)


def _steps_per_second(world: Environment, episodes: Sequence[Episode], num_slots: int) -> float:
    _play(world, episodes, num_slots, _WARM_UP_SECONDS)
    return _play(world, episodes, num_slots, _SECONDS)


def _play(world: Environment, episodes: Sequence[Episode], num_slots: int, seconds: float) -> float:
    """Return the steps per second; an episode that ends, or runs out of logged actions, makes room for the next."""
    following, left = itertools.cycle(episodes), {slot: deque[str]() for slot in range(num_slots)}
    num_steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        if fresh := {slot: next(following) for slot, actions in left.items() if not actions}:
            world.reset({slot: task for slot, (task, _) in fresh.items()})
            left |= {slot: deque(actions) for slot, (_, actions) in fresh.items()}
        for slot, step in world.step({slot: actions.popleft() for slot, actions in left.items()}).items():
            num_steps += 1
            if step.done:
                left[slot].clear()
    return num_steps / (time.perf_counter() - started)


if __name__ == "__main__":
    main(*sys.argv[1:])
