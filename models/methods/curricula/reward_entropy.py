"""Tasks drawn by reward entropy (paper, section 4.2, Eq. 7)."""

import random
from collections.abc import Sequence

from pydantic import Field

from models.methods.curricula import Curriculum
from schemas.recipes.section import Section
from schemas.records import AgentTask

_MOST = 0.25
"""Maximum reward entropy for returns of 0 and 1."""


class RewardEntropyOptions(Section):
    """Options of the curriculum by reward entropy."""

    floor: float = Field(default=0.05, gt=0, le=0.25)
    """Weight of a task whose group all succeeded or all failed; a reward entropy is 0.25 at most. Lower it if most
    tasks are like that, or they fill the rounds."""
    fill_generated: bool = True
    """Draw as many generated tasks as lambda allows. False: lambda only bounds how many the weights draw, as in the
    paper."""


class RewardEntropy(Curriculum[RewardEntropyOptions]):
    """Tasks drawn with weights proportional to their latest reward entropy.

    An untried task counts as the maximum of these, but at least as 0.25.
    """

    Options = RewardEntropyOptions

    def draw(
        self, tasks: Sequence[AgentTask], num_tasks: int, max_generated: int, rng: random.Random
    ) -> list[AgentTask]:
        """Return distinct tasks, no task being forgotten."""
        most = max([_MOST, *self.entropies.values()])
        weights = {task.task_id: max(self.options.floor, self.entropies.get(task.task_id, most)) for task in tasks}
        # Efraimidis and Spirakis: the largest u^(1/w) are a weighted draw without replacement.
        order = sorted(tasks, key=lambda task: rng.random() ** (1 / weights[task.task_id]), reverse=True)
        generated = [task for task in order if task.generated][:max_generated]
        originals = [task for task in order if not task.generated]
        if self.options.fill_generated:
            return (generated + originals)[:num_tasks]
        allowed = {task.task_id for task in generated + originals}
        return [task for task in order if task.task_id in allowed][:num_tasks]
