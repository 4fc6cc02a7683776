"""Many episodes in real environments with processes of their own: what these hold, and what is left of them."""

import os
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any
from uuid import uuid4

import psutil

from infra.environments.by_name import open_environment
from infra.settings import settings
from models.rollout.behaviour_policies import collect
from schemas.recipes.environments import AlfworldRecipe, MiniwobRecipe, ScienceworldRecipe
from schemas.records import Step, Trajectory
from tests.alfworld import place_of_games
from tests.faults.outcome import Outcome

_AT_ONCE, _NUM_TASKS = 20, 100
_NOISE, _MAX_STEPS = 0.2, 30
_MAX_GROWTH, _ENOUGH_READINGS = 0.25, 10
_GONE_WITHIN_S = 30
_KILLED_AT_STEP = 3
_BY_CHANCE = 2
"""Number of episodes that may fail by themselves."""
_OURS = "STARTED_BY_TEST"
"""Environment variable that every process we start inherits, whatever becomes its parent later."""
_RECIPES = (
    AlfworldRecipe(),
    MiniwobRecipe(),
    ScienceworldRecipe(families=("find-living-thing", "find-animal")),
)


def check(num_episodes: int) -> Outcome:
    """Play `num_episodes` in each environment, and kill one of the processes that play halfway through.

    The episodes of that process end as failures, and hardly any others.

    Raises:
        InputError: one of the environments cannot be played here.
    """
    outcome = Outcome(
        "episodes in a row in ALFWorld, MiniWoB++ and ScienceWorld", "each ends, no process is left, memory is bounded"
    )
    os.environ[_OURS] = uuid4().hex
    if "ALFWORLD_DATA" not in os.environ and (found := place_of_games()):
        os.environ["ALFWORLD_DATA"] = str(found)
    for recipe in _RECIPES:
        environment: Any = type(open_environment(recipe))(recipe)  # an instance of our own, since it is closed
        readings, failed = list[int](), list[Trajectory]()
        starts = range(0, num_episodes, _AT_ONCE)
        for start in starts:
            if start == starts[len(starts) // 2]:
                _kill_one_amid(environment)
            episodes = _played(environment, start)
            failed += [episode for episode in episodes if episode.failure]
            outcome.num_tries += len(episodes)
            readings.append(_held())
        played = _playing()
        environment.close()
        name = recipe.name
        outcome.broken += _too_few_or_many(name, failed) + _growth(name, readings) + _survivors(name, played)
    return outcome


def _kill_one_amid(environment: Any) -> None:
    """Kill one of the processes that hold games, at the third step from now."""
    step, numbers = environment.step, count(1)

    def killing(actions: Mapping[int, str]) -> dict[int, Step]:
        if next(numbers) == _KILLED_AT_STEP:
            playing = [one for one in psutil.Process().children() if "spawn_main" in " ".join(one.cmdline())]
            random.choice([one for one in playing if _is_ours(one)]).kill()  # other tests have left some open
        return step(actions)

    environment.step = killing


def _too_few_or_many(name: str, failed: list[Trajectory]) -> list[str]:
    """Return a problem if no episode failed, or clearly more than one process plays.

    All processes play equally many, and an episode or two may have ended before.
    """
    played = -(-_AT_ONCE // settings().environment_processes)
    if 0 < len(failed) <= played + _BY_CHANCE:
        return []
    reasons = Counter(one.turns[-1].step.reasoning for one in failed).most_common(1)
    return [f"{name}: {len(failed)} episodes failed where {played} were played by what was killed: {reasons}"]


def _played(environment: Any, start: int) -> list[Trajectory]:
    tasks = environment.tasks("train", _AT_ONCE, first_seed=start % _NUM_TASKS)
    return collect(environment, tasks, [0.0, _NOISE], start, _MAX_STEPS)


def _playing() -> set[psutil.Process]:
    """Return all processes that we started, orphans included, except multiprocessing's resource tracker.

    The tracker lasts as long as this process. A web page's process writes its title over its variables, and is
    recognised by its parents.
    """
    found = set[psutil.Process]()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            found |= {process, *process.children(recursive=True)} if _is_ours(process) else set()
    return found


def _is_ours(process: psutil.Process) -> bool:
    if process.pid == os.getpid() or process.environ().get(_OURS) != os.environ[_OURS]:
        return False
    return "resource_tracker" not in " ".join(process.cmdline())


def _held() -> int:
    """Return the bytes that all processes that play hold."""
    held = 0
    for process in _playing():
        with suppress(psutil.Error):
            held += process.memory_full_info().uss
    return held


def _growth(name: str, readings: list[int]) -> list[str]:
    """Return a problem if the maximum of the last half exceeds that of the first; a few readings show nothing."""
    if len(readings) < _ENOUGH_READINGS:
        return []
    half = len(readings) // 2
    first, last = max(readings[:half]), max(readings[half:])
    grown = f"{name}: {first / 2**20:.0f} MB became {last / 2**20:.0f}"
    return [grown] if last > first * (1 + _MAX_GROWTH) else []


def _survivors(name: str, played: set[psutil.Process]) -> list[str]:
    _, alive = psutil.wait_procs(_playing() | played, timeout=_GONE_WITHIN_S)
    return [f"{name}: process {one.pid} {one.name()} is left" for one in alive]
