"""Simulated real successes: what the gate would be shown, night after night, by policies whose true success is known.

A task's chance of success is drawn from a Beta distribution with concentration 1 about the start's mean, so that most tasks
are nearly always won or nearly always lost. All policies share it: they differ by a gain alone, which wins the same share of
what is lost on each task and is exact on the mean, and by luck, which is each policy's own. A greedy policy does on a task
what it always does there, so that its one draw is all that is to be known of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.measurement.gate import Dreams
from schemas.recipes.recipe import Recipe

PERFECT = Dreams(outcome_agreement=1, outcome_kappa_high=1, dream_real_gap=0)


@dataclass(frozen=True)
class TestTasks:
    """The test tasks of a recipe."""

    __test__ = False

    num_tasks: int
    episodes_per_task: int
    families: Sequence[str]
    start_success: float
    fresh: bool
    """Whether each night plays tasks that nobody saw before; else the same ones anew."""

    @classmethod
    def of(cls, recipe: Recipe, start_success: float) -> "TestTasks":
        """As a recipe has them: cooking games and web pages have endless seeds."""
        environment = recipe.environment
        fresh = environment.name in ("textworld-cooking", "miniwob")
        episodes, families = recipe.evaluation.episodes_per_task, environment.family_names
        return cls(environment.num_test_tasks, episodes, families, start_success, fresh)

    @property
    def family_of(self) -> dict[str, str]:
        """Family by task id: dealt in turn."""
        return {str(task): self.families[task % len(self.families)] for task in range(self.num_tasks)}

    def chances(self, random: np.random.Generator, num_panels: int) -> np.ndarray:
        """The start's chance of success on the tasks of some panels (panels, tasks)."""
        mean = self.start_success
        return random.beta(mean, 1 - mean, (num_panels, self.num_tasks))

    def gained(self, chances: np.ndarray, gain: float) -> np.ndarray:
        """Those of a policy with so much more success on the mean: of the same tasks, or of all where each night has others."""
        lost = 1 - (self.start_success if self.fresh else chances.mean(axis=-1, keepdims=True))
        return chances + np.minimum(1, gain / lost) * (1 - chances)

    def played(self, random: np.random.Generator, chances: np.ndarray) -> np.ndarray:
        """Mean success of each task's episodes."""
        return random.binomial(self.episodes_per_task, chances) / self.episodes_per_task


def by_task(successes: np.ndarray) -> dict[str, float]:
    """As an evaluation tells it."""
    return {str(task): float(success) for task, success in enumerate(successes)}
