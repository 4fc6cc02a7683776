"""Which logged episodes are one.

An episode is its id and its content. Of one that grew, the longer form counts; the same one twice counts once. The file only
tells equal ids of different episodes apart.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from schemas.records import Trajectory, Turn


@dataclass
class Episodes:
    """Distinct episodes in the order they came, and how many others were merged into them."""

    trajectories: list[Trajectory] = field(default_factory=list)
    num_repeated: int = 0
    """Came again with the same content."""
    num_grown: int = 0
    """Came in a shorter form, too."""


def distinct(read: Iterable[tuple[str, Trajectory]]) -> Episodes:
    """Distinct episodes among those of several files, each with the name of its file."""
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
    """Whether two of the same id are of the same task, and one goes on where the other stops."""
    same_task = one.task.task_id == other.task.task_id
    return same_task and all(map(_is_same_turn, one.turns, other.turns))


def _is_same_turn(one: Turn, other: Turn) -> bool:
    return (one.state, one.action, one.step.state) == (other.state, other.action, other.step.state)
