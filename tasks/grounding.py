"""With which demonstrations the experience model is taught: as retrieval will give them, to old tasks and to new ones."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from models.examples import situations_of
from models.prompts import Situation
from models.retrieval import ReplayIndex
from schemas.recipe import ExperienceRecipe
from schemas.records import Trajectory
from tasks.rows import trajectory_id


class Grounding:
    """Gives the situations of an episode the demonstrations that they will have: of its task, or as a new task has."""

    def __init__(
        self, index: ReplayIndex, k: int, episodes: Sequence[Trajectory], recipe: ExperienceRecipe, seed: int
    ) -> None:
        """Ground episodes in an index that holds them."""
        self._index, self._k, self._recipe, self._seed = index, k, recipe, seed
        self._of_task: dict[str, set[str]] = defaultdict(set)
        for episode in episodes:
            self._of_task[episode.task.task_id].add(trajectory_id(episode))

    def situations(self, episode: Trajectory) -> list[Situation]:
        """With their demonstrations: none from the episode itself, or none from its task."""
        own = trajectory_id(episode)
        situations = [replace(s, trajectory_id=own) for s in situations_of(episode, self._recipe.history_length)]
        hidden = self._of_task[episode.task.task_id] if self._is_new(own) else frozenset[str]()
        found = self._index.retrieve(situations, self._k, hidden)
        return [replace(s, demonstrations=tuple(demos)) for s, demos in zip(situations, found, strict=True)]

    def _is_new(self, name: str) -> bool:
        """Whether the episode is shown as one of a task that nobody logged."""
        return random.Random(f"{self._seed}/{name}").random() < self._recipe.new_task_share
