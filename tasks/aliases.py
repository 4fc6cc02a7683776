"""Aliases: invented names for the things of some tasks, so that what a policy learns there holds whatever they are called."""

import random
from collections.abc import Sequence

from infra.environments.by_name import open_environment
from models.renaming import Aliases, invented_names, name_pieces
from schemas.recipe import EnvironmentRecipe
from schemas.records import AgentTask, Reference
from tasks.keep import get_frozen_model


def draw_aliases(
    tasks: Sequence[AgentTask], share: float, policy: Reference, environment: EnvironmentRecipe, seed: int
) -> dict[str, Aliases]:
    """By task id, aliases for about this share of the tasks, all episodes of a task under the same.

    Differs: the paper's policy is shown every task as it is. Generated tasks keep their names, since the real environment
    does not know what is in them, and so do tasks on whose names something depends.
    """
    rng = random.Random(f"{seed}/aliases")
    chosen = {task.task_id: task for task in tasks if not task.generated and rng.random() < share}
    if not chosen:
        return {}
    real = open_environment(environment)
    pieces = name_pieces(get_frozen_model(policy).tokenizer.get_vocab())
    return {
        task_id: Aliases(invented_names(real.names(task), rng, pieces, f"{task.instruction}\n{task.initial_state}"))
        for task_id, task in chosen.items()
    }
