"""Many episodes in real environments that have processes of their own: what they hold afterwards, and what is left of them."""

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil

from infra.environments.alfworld.environment import AlfworldEnvironment
from infra.environments.games_in_processes import GamesInProcesses
from infra.environments.miniwob.browser import require_browser
from infra.environments.miniwob.environment import MiniwobEnvironment
from infra.environments.scienceworld.environment import ScienceworldEnvironment
from models.behaviours import collect
from schemas.environments import AlfworldRecipe, MiniwobRecipe, ScienceworldRecipe
from schemas.errors import InputError
from schemas.records import Trajectory
from tests.faults.outcome import Outcome

_AT_ONCE, _NUM_TASKS = 20, 100
_NOISE, _MAX_STEPS = 0.2, 30
_MAX_GROWTH = 0.25
_GONE_WITHIN_S = 30


def check(num_episodes: int) -> Outcome:
    """As many episodes in each environment that can be played here, and one process killed in the middle."""
    outcome = Outcome(
        "episodes in a row in ALFWorld, MiniWoB++ and ScienceWorld", "no process is left, memory is bounded"
    )
    for open_one in _playable():
        environment = open_one()
        readings = []
        for start in range(0, num_episodes, _AT_ONCE):
            for episode in _played(environment, start):
                outcome.tried(*([] if episode.turns else [f"{episode.task.task_id} was not played"]))
            readings.append(_held())
            if start == num_episodes // 2 // _AT_ONCE * _AT_ONCE:
                random.choice(_playing()).kill()
        left = _playing()
        environment.close()
        outcome.broken += _growth(type(environment).__name__, readings) + _survivors(left)
    return outcome


def _playable() -> Iterator[Callable[[], GamesInProcesses]]:
    with suppress(InputError):
        AlfworldEnvironment(AlfworldRecipe()).tasks("train", 1)
        yield lambda: AlfworldEnvironment(AlfworldRecipe())
    with suppress(InputError):
        require_browser()
        yield lambda: MiniwobEnvironment(MiniwobRecipe())
    if shutil.which("java"):
        yield lambda: ScienceworldEnvironment(ScienceworldRecipe(families=("find-living-thing", "find-animal")))


def _played(environment: GamesInProcesses, start: int) -> list[Trajectory]:
    tasks = environment.tasks("train", _AT_ONCE, first_seed=start % _NUM_TASKS)  # type: ignore[attr-defined]
    return collect(environment, tasks, [0.0, _NOISE], start, _MAX_STEPS)  # type: ignore[arg-type]


def _playing() -> list[psutil.Process]:
    """All that we started, but multiprocessing's bookkeeper, which lives as long as we do."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            found += [process] if "resource_tracker" not in " ".join(process.cmdline()) else []
    return found


def _held() -> int:
    """Bytes of all processes that play."""
    held = 0
    for process in _playing():
        with suppress(psutil.Error):
            held += process.memory_full_info().uss
    return held


def _growth(name: str, readings: list[int]) -> list[str]:
    """Of the most in the last half over the most in the first."""
    half = len(readings) // 2
    first, last = max(readings[: half or 1]), max(readings[half:])
    grown = f"{name}: {first / 2**20:.0f} MB became {last / 2**20:.0f}"
    return [grown] if last > first * (1 + _MAX_GROWTH) else []


def _survivors(processes: list[psutil.Process]) -> list[str]:
    _, alive = psutil.wait_procs(processes, timeout=_GONE_WITHIN_S)
    return [f"process {one.pid} {one.name()} is left" for one in alive]
