"""Many episodes in real environments that have processes of their own: what they hold afterwards, and what is left of them."""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import uuid4

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
_MAX_GROWTH, _ENOUGH_READINGS = 0.25, 10
_GONE_WITHIN_S = 30
_OURS = "STARTED_BY_TEST"
"""A variable that whatever we start inherits, whoever it belongs to later."""


def check(num_episodes: int) -> Outcome:
    """As many episodes in each environment that can be played here, and one process killed in the middle.

    What that process played, and nothing else, may end as a failure. It is none of those that end a browser with its
    parent (infra/guard.py): where such a one is killed the browser is left.
    """
    outcome = Outcome(
        "episodes in a row in ALFWorld, MiniWoB++ and ScienceWorld", "each ends, no process is left, memory is bounded"
    )
    os.environ[_OURS] = uuid4().hex
    for open_one in _playable():
        environment = open_one()
        name, readings, failed = type(environment).__name__, list[int](), list[Trajectory]()
        starts = range(0, num_episodes, _AT_ONCE)
        for start in starts:
            if start == starts[len(starts) // 2]:
                random.choice([one for one in _playing() if "infra.guard" not in one.cmdline()]).kill()
            episodes = _played(environment, start)
            failed += [episode for episode in episodes if episode.failure]
            outcome.num_tries += len(episodes)
            readings.append(_held())
        environment.close()
        outcome.broken += _too_many(name, failed) + _growth(name, readings) + _survivors(name)
    return outcome


def _too_many(name: str, failed: list[Trajectory]) -> list[str]:
    if len(failed) <= _AT_ONCE:
        return []
    reasons = Counter(one.turns[-1].step.reasoning for one in failed)
    return [f"{name}: {len(failed)} episodes failed, most of them so: {reasons.most_common(1)[0][0]}"]


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
    """All that we started, orphans too, but multiprocessing's bookkeeper, which lives as long as we do."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            found += [process] if _is_ours(process) else []
    return found


def _is_ours(process: psutil.Process) -> bool:
    if process.pid == os.getpid() or process.environ().get(_OURS) != os.environ[_OURS]:
        return False
    return "resource_tracker" not in " ".join(process.cmdline())


def _held() -> int:
    """Bytes of all processes that play."""
    held = 0
    for process in _playing():
        with suppress(psutil.Error):
            held += process.memory_full_info().uss
    return held


def _growth(name: str, readings: list[int]) -> list[str]:
    """Of the most in the last half over the most in the first; of a few readings nobody can say."""
    if len(readings) < _ENOUGH_READINGS:
        return []
    half = len(readings) // 2
    first, last = max(readings[:half]), max(readings[half:])
    grown = f"{name}: {first / 2**20:.0f} MB became {last / 2**20:.0f}"
    return [grown] if last > first * (1 + _MAX_GROWTH) else []


def _survivors(name: str) -> list[str]:
    _, alive = psutil.wait_procs(_playing(), timeout=_GONE_WITHIN_S)
    return [f"{name}: process {one.pid} {one.name()} is left" for one in alive]
