"""Merge logged episodes that are the same.

An episode is identified by its id and its content. Of one that grew, the longer form counts; a repeated one counts
once. The file only distinguishes different episodes with equal ids.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from schemas.records import Trajectory, Turn


@dataclass
class Episodes:
    """Distinct episodes in the order they came, and the numbers of others that were merged into them."""

    trajectories: list[Trajectory] = field(default_factory=list)
    num_repeated: int = 0
    """Number of episodes that came again with the same content."""
    num_grown: int = 0
    """Number of episodes that also came in a shorter form."""


def distinct(read: Iterable[tuple[str, Trajectory]]) -> Episodes:
    """Return the distinct episodes of several files, each given with the name of its file."""
    found = Episodes()
    places: dict[str, list[int]] = defaultdict(list)
    for file, episode in read:
        known = places[episode.episode_id]
        place = next((at for at in known if _are_one(found.trajectories[at], episode)), None)
        if place is None:
            known.append(len(found.trajectories))
            named = f"{episode.episode_id} in {file}" if len(known) > 1 else episode.episode_id
            found.trajectories.append(replace(episode, episode_id=named))
        else:
            _merge(found, place, episode)
    return found


def _merge(found: Episodes, place: int, episode: Trajectory) -> None:
    present = found.trajectories[place]
    if len(present.turns) == len(episode.turns):
        found.num_repeated += 1
        return
    found.num_grown += 1
    if len(episode.turns) > len(present.turns):
        found.trajectories[place] = replace(episode, episode_id=present.episode_id)


def _are_one(one: Trajectory, other: Trajectory) -> bool:
    """Return whether two episodes of the same id have the same task, and one continues the other."""
    same_task = one.task.task_id == other.task.task_id
    return same_task and all(map(_is_same_turn, one.turns, other.turns))


def _is_same_turn(one: Turn, other: Turn) -> bool:
    return (one.state, one.action, one.step.state) == (other.state, other.action, other.step.state)
