"""Aliases: other names for the things of some tasks, so that what a policy learns there holds whatever they are called."""

import random
from collections.abc import Sequence

from infra.environments.by_name import open_environment
from models.text.renaming import Aliases, invented_names, name_pieces
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import AgentTask, Reference
from tasks.running.artifacts import get_frozen_model

_BORROWED_SHARE = 0.5
"""Of the tasks with aliases: under names of other tasks' things. No training task may want carrots diced; there, one does."""


def draw_aliases(
    tasks: Sequence[AgentTask], share: float, policy: Reference, environment: EnvironmentRecipe, seed: int
) -> dict[str, Aliases]:
    """By task id, aliases for about this share of the tasks, all episodes of a task under the same.

    Half of them are invented, for names that are yet to come; the others are names of things in these tasks, dealt anew.

    Differs: the paper's policy is shown every task as it is. Generated tasks keep their names, since the real environment
    does not know what is in them, and so do tasks on whose names something depends.
    """
    rng = random.Random(f"{seed}/aliases")
    originals = [task for task in tasks if not task.generated]
    chosen = [task for task in originals if rng.random() < share]
    if not chosen:
        return {}
    real = open_environment(environment)
    known = sorted({name for task in originals for name in real.names(task)})
    pieces = name_pieces(get_frozen_model(policy).tokenizer.get_vocab())

    def other_names(task: AgentTask) -> dict[str, str]:
        own = real.names(task)
        if rng.random() < _BORROWED_SHARE:
            return dict(zip(own, rng.sample(known, len(own)), strict=True))
        return invented_names(own, rng, pieces, f"{task.instruction}\n{task.initial_state}")

    return {task.task_id: Aliases(other_names(task)) for task in chosen}
