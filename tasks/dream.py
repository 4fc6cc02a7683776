"""Dream: groups of episodes of the round's tasks, inside the experience model (paper, section 4.1).

in:  tasks, policy, experience model, what it may retrieve
out: dreamt trajectories, group by group; their rows in `transitions` with origin dream
"""

import random

from infra.doors import cycle
from infra.environments.by_name import open_environment
from models.backbone import LanguageModel
from models.renaming import RenamedEnvironment, invented_names, name_pieces
from schemas.recipe import GrpoRecipe, PlayRecipe
from schemas.records import AgentTask, Reference
from tasks.keep import get_frozen_model, get_tasks, put_trajectories, use_threads
from tasks.play import dream_environment, play
from tasks.rows import Provenance
from tasks.store_rows import store_rows
from tasks.versioned import versioned_task


@versioned_task(version=2)
def dream(
    tasks: Reference,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    grpo: GrpoRecipe,
    rename_share: float,
    round: int,
) -> Reference:
    """Groups of dreamt episodes, group_size of each task next to each other.

    A share of the tasks is dreamt under invented names, as far as the policy can see.
    """
    use_threads()
    seed, wanted, model = recipe.seed * 1_000_003 + round, get_tasks(tasks), get_frozen_model(policy)
    dreams = dream_environment(experience_model, experience, recipe.experience, recipe.retrieval, seed)
    environment = RenamedEnvironment(dreams, _invented(wanted, rename_share, recipe, model, round))
    repeated = [environment.seen(task) for task in wanted for _ in range(grpo.group_size)]
    played = play("dream", model, environment, "dream", repeated, recipe, grpo.temperature, seed)
    episodes = [environment.as_it_was(episode) for episode in played]
    made_by = Provenance(cycle().recipe_digest, recipe.seed, round, policy.sha256, experience_model.sha256)
    tag = store_rows(episodes, made_by, recipe.retrieval, f"dream-{round}")
    success = sum(t.success for t in episodes) / len(episodes)
    broken = sum(t.failure is not None for t in episodes)
    return put_trajectories(episodes, dream_success=success, num_broken=broken, table_tag=tag)


def _invented(
    tasks: list[AgentTask], share: float, recipe: PlayRecipe, model: LanguageModel, round: int
) -> dict[str, dict[str, str]]:
    """Invented names for a share of the tasks, by task id."""
    rng = random.Random(f"{recipe.seed}/names/{round}")
    environment, pieces = open_environment(recipe.environment), name_pieces(model.tokenizer.get_vocab())
    return {
        task.task_id: invented_names(environment.names(task), rng, pieces, f"{task.instruction}\n{task.initial_state}")
        for task in tasks
        if rng.random() < share
    }
