"""Curriculum: how much tasks still teach, which ones come next, and whether a round has enough of them."""

import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from models.methods.entropies import group_entropies
from models.methods.method import Method, OptionsT, open_method
from schemas.recipes.methods import CurriculumMethodRecipe
from schemas.records import AgentTask, Trajectory


class Curriculum(Method[OptionsT]):
    """Port of methods that choose the tasks of a round.

    All of them observe reward entropy, by which the pipeline also chooses tasks to vary.
    """

    needs_wins: ClassVar[bool] = False
    """True if it must see the logged wins to say how tasks start."""

    def __init__(self, options: OptionsT) -> None:
        """Create a curriculum that has observed nothing."""
        super().__init__(options)
        self.entropies: dict[str, float] = {}
        """Latest reward entropy by task id."""

    def state(self) -> dict[str, Any]:
        """Return what was observed, as JSON data."""
        return {"entropies": self.entropies}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; an empty one is that of a new curriculum."""
        self.entropies = dict(state.get("entropies", {}))

    def observe(self, trajectories: Sequence[Trajectory]) -> None:
        """Take note of the groups of a round; failed episodes have no outcome."""
        self.entropies |= group_entropies(trajectories)

    @abstractmethod
    def draw(
        self, tasks: Sequence[AgentTask], num_tasks: int, max_generated: int, rng: random.Random
    ) -> list[AgentTask]:
        """Return distinct tasks to play next.

        Args:
            tasks: Original and generated tasks to draw from.
            num_tasks: Number of tasks to draw; fewer if there are not enough.
            max_generated: Maximum number of generated tasks among them: the paper's lambda, as a count.
            rng: Source of randomness.
        """

    def starts(
        self, tasks: Sequence[AgentTask], wins: Sequence[Trajectory], share_done: float, rng: random.Random
    ) -> list[AgentTask]:
        """Return drawn tasks as they are to start in a dream; by default from their beginnings.

        Args:
            tasks: Tasks that were drawn.
            wins: Real wins of train tasks; none unless the method needs them.
            share_done: Share of the rounds that are done, from 0 to 1.
            rng: Source of randomness.
        """
        del wins, share_done, rng
        return [*tasks]

    def num_missing(self, trajectories: Sequence[Trajectory], num_wanted: int) -> int:
        """Return the number of further groups to play in this round before training.

        Args:
            trajectories: Groups played in this round so far.
            num_wanted: Number of groups per round, as the recipe says.
        """
        del trajectories, num_wanted
        return 0


def open_curriculum(recipe: CurriculumMethodRecipe, state: dict[str, Any]) -> Curriculum:
    """Return the curriculum that a recipe names, in a state."""
    curriculum = open_method(Curriculum, recipe)
    curriculum.restore(state)
    return curriculum


def tasks_to_vary(
    tasks: Sequence[AgentTask], entropies: dict[str, float], num_tasks: int, *, generated: bool = False
) -> list[AgentTask]:
    """Return the tasks at the edge of the policy's ability, highest reward entropy first; generated ones if asked for."""
    edge = [task for task in tasks if entropies.get(task.task_id, 0.0) > 0 and (generated or not task.generated)]
    return sorted(edge, key=lambda task: -entropies[task.task_id])[:num_tasks]
