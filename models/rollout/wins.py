"""Wins among episodes: the shortest of each task."""

from collections.abc import Sequence

from schemas.records import Trajectory


def shortest_successes(episodes: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the shortest success of each task, in the order of the tasks, which takes families in turn."""
    shortest: dict[str, Trajectory] = {}
    for episode in episodes:
        if episode.success:
            best = shortest.setdefault(episode.task.task_id, episode)
            shortest[episode.task.task_id] = min(best, episode, key=lambda t: len(t.turns))
    return list(shortest.values())
