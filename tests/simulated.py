"""Simulated real successes: results for the gate, night after night, of policies whose true success is known.

A task's chance of success is drawn from a Beta distribution with concentration 1 about the start's mean, so that most
tasks are nearly always won or nearly always lost. All policies share it. They differ only by a gain, which wins the
same share of what is lost on each task and is exact on the mean, and by luck, which is each policy's own. A greedy
policy always does the same on a task, so that a single draw shows all there is to know.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.measurement.gate import Dreams
from schemas.recipes.recipe import Recipe

PERFECT = Dreams(outcome_agreement=1, outcome_kappa_high=1, dream_real_gap=0)


@dataclass(frozen=True)
class TestTasks:
    """Test tasks of a recipe."""

    __test__ = False

    num_tasks: int
    episodes_per_task: int
    families: Sequence[str]
    start_success: float
    fresh: bool
    """True if each night plays tasks that were never seen before; else the same tasks are played again."""

    @classmethod
    def of(cls, recipe: Recipe, start_success: float) -> "TestTasks":
        """Return a recipe's test tasks; cooking games and web pages have endless seeds, so theirs are fresh."""
        environment = recipe.environment
        fresh = environment.name in ("textworld-cooking", "miniwob")
        episodes, families = recipe.evaluation.episodes_per_task, environment.family_names
        return cls(environment.num_test_tasks, episodes, families, start_success, fresh)

    @property
    def family_of(self) -> dict[str, str]:
        """Family by task id, dealt in turn."""
        return {str(task): self.families[task % len(self.families)] for task in range(self.num_tasks)}

    def chances(self, random: np.random.Generator, num_panels: int) -> np.ndarray:
        """Return the start's chance of success on the tasks of some panels (panels, tasks)."""
        mean = self.start_success
        return random.beta(mean, 1 - mean, (num_panels, self.num_tasks))

    def gained(self, chances: np.ndarray, gain: float) -> np.ndarray:
        """Return the chances of a policy with `gain` more mean success: on these tasks, or on all tasks if fresh."""
        lost = 1 - (self.start_success if self.fresh else chances.mean(axis=-1, keepdims=True))
        return chances + np.minimum(1, gain / lost) * (1 - chances)

    def played(self, random: np.random.Generator, chances: np.ndarray) -> np.ndarray:
        """Return the mean success of each task's episodes."""
        return random.binomial(self.episodes_per_task, chances) / self.episodes_per_task


def by_task(successes: np.ndarray) -> dict[str, float]:
    """Return the success by task id, as an evaluation reports it."""
    return {str(task): float(success) for task, success in enumerate(successes)}
