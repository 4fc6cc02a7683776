"""Collect the wins of a policy: the shortest won episode of each task, to clone the policy from (expert iteration).

in:  earlier wins, new episodes
out: real episodes, or dreamt ones if they are trusted
"""

from collections.abc import Sequence
from dataclasses import replace

from infra.context import run_context
from infra.environments.by_name import open_environment
from models.measurement.calibration import as_episode, replay
from models.rollout.wins import shortest_successes
from schemas.recipes.environments import EnvironmentRecipe
from schemas.records import Reference, Trajectory
from tasks.running.artifacts import get_trajectories, put_trajectories
from tasks.running.versioned import versioned_task


@versioned_task
def collect_wins(
    earlier: list[Reference], episodes: list[Reference], environment: EnvironmentRecipe, trust_dreams: bool
) -> Reference:
    """Return the shortest win of each task, and note the number of real steps that it took to confirm dreamt wins.

    Args:
        earlier: Wins collected before.
        episodes: New episodes, real or dreamt.
        environment: Environment that dreamt wins are replayed in.
        trust_dreams: Take dreamt wins as they are. Otherwise the shortest dreamt win of each task is replayed in the
            real environment, if no shorter real win is known, and counts as it went there; generated tasks are left
            out, since no real environment knows them.
    """
    new = get_trajectories(*episodes)
    known = shortest_successes([*get_trajectories(*earlier), *(one for one in new if one.origin == "real")])
    dreamt = _shorter_than(known, shortest_successes([one for one in new if one.origin == "dream"]))
    replays = [] if trust_dreams else _replayed(dreamt, environment)
    confirmed = dreamt if trust_dreams else [one for one in replays if one.success]
    wins = shortest_successes([*known, *confirmed])
    return put_trajectories(
        [replace(win, tokens=()) for win in wins],
        num_dreamt_wins=len(dreamt),
        num_confirmed_wins=len(confirmed),
        num_real_steps=sum(len(one.turns) for one in replays),
    )


def _shorter_than(known: Sequence[Trajectory], wins: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the wins of tasks that no known win solves in as few steps."""
    num_steps = {win.task.task_id: len(win.turns) for win in known}
    return [win for win in wins if len(win.turns) < num_steps.get(win.task.task_id, len(win.turns) + 1)]


def _replayed(dreamt: Sequence[Trajectory], environment: EnvironmentRecipe) -> list[Trajectory]:
    """Return the real episodes that the actions of dreamt ones lead to, generated tasks left out."""
    playable = [one for one in dreamt if not one.task.generated]
    with run_context().display.stage("replays"):
        replays = replay(playable, open_environment(environment))
    return [as_episode(one, steps) for one, steps in zip(playable, replays, strict=True) if steps]
