"""Wins among episodes: the shortest of each task, and the one that is most like another task."""

from collections.abc import Sequence

from schemas.records import AgentTask, Trajectory


def shortest_successes(episodes: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the shortest success of each task, in the order of the tasks, which takes families in turn."""
    shortest: dict[str, Trajectory] = {}
    for episode in episodes:
        if episode.success:
            best = shortest.setdefault(episode.task.task_id, episode)
            shortest[episode.task.task_id] = min(best, episode, key=lambda t: len(t.turns))
    return list(shortest.values())


def most_similar(task: AgentTask, wins: Sequence[Trajectory]) -> Trajectory:
    """Return the win of the task itself, else the one whose instruction shares most of its words; the first of several."""
    words = set(task.instruction.split())

    def likeness(win: Trajectory) -> tuple[bool, float]:
        others = set(win.task.instruction.split())
        return win.task.task_id == task.task_id, len(words & others) / max(1, len(words | others))

    return max(wins, key=likeness)
