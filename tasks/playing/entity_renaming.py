"""Entity renaming: other names in some tasks, so that what a policy learns there holds under any names."""

import random
from collections.abc import Sequence

from infra.environments.by_name import open_environment
from models.text.renaming import EntityRenaming, invented_names, name_pieces
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import AgentTask, Reference
from tasks.running.artifacts import get_frozen_model

_BORROWED_SHARE = 0.5
"""Share of renamed tasks with names from other tasks. No training task may want carrots diced; renamed, one does."""


def draw_entity_renamings(
    tasks: Sequence[AgentTask], share: float, policy: Reference, environment: EnvironmentRecipe, seed: int
) -> dict[str, EntityRenaming]:
    """Draw entity renamings, by task id, for about this share of the tasks; all episodes of a task share one.

    About half use invented names, to prepare for unseen names; the others use names from these tasks, reshuffled.

    Differs: the paper's policy is shown every task as it is. Generated tasks keep their names, since the real
    environment does not know their entities, and names that a rule depends on stay.
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

    return {task.task_id: EntityRenaming(other_names(task)) for task in chosen}
