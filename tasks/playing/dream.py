"""Dream groups of episodes of the round's tasks inside the experience model (paper, section 4.1).

in:  tasks, policy, experience model, the trajectories that it may retrieve
out: dreamt trajectories, group by group; their rows in `transitions` with origin dream
"""

from dataclasses import replace

from schemas.recipes.recipe import GrpoRecipe, PlayRecipe
from schemas.records import Reference, Trajectory
from tasks.data.provenance import made_here
from tasks.data.store_rows import pin_rows, store_shard
from tasks.playing.entity_renaming import draw_entity_renamings
from tasks.playing.play import dream_environment, play
from tasks.running.artifacts import get_tasks, get_trajectories, put_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task
from tasks.running.workers import by_workers

_BETWEEN_SHARDS = 10_000_019
"""Seed offset between two shards."""


@versioned_task
def dream(
    tasks: Reference,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    grpo: GrpoRecipe,
    round: int,
    num_shards: int = 1,
    max_staleness: int = 0,
) -> Reference:
    """Play groups of dreamt episodes, group_size of each task next to each other, divided into shards.

    If max_staleness is positive, the policy is trained meanwhile, and episodes under way go on with its newest weights.
    """
    follow = max_staleness > 0
    calls = [
        (tasks, policy, experience_model, experience, recipe, grpo, round, num_shards, follow, shard)
        for shard in range(num_shards)
    ]
    shards = by_workers("dream", dream_shard, calls)
    dreamt = shards[0] if num_shards == 1 else put_trajectories(get_trajectories(*shards))
    return replace(dreamt, notes=dreamt.notes | _measured(get_trajectories(dreamt), pin_rows(f"dream-{round}")))


def dream_shard(
    tasks: Reference,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    grpo: GrpoRecipe,
    round: int,
    num_shards: int,
    follow: bool,
    shard: int,
) -> Reference:
    """Play one of num_shards equal parts of the groups, all neighbours, and store their rows."""
    use_threads()
    seed = recipe.seed * 1_000_003 + round + shard * _BETWEEN_SHARDS
    environment = dream_environment(experience_model, experience, recipe, seed)
    drawn = get_tasks(tasks)
    first, end = (len(drawn) * edge // num_shards for edge in (shard, shard + 1))
    repeated = [task for task in drawn[first:end] for _ in range(grpo.group_size)]
    renamings = draw_entity_renamings(drawn[first:end], grpo.renamed_share, policy, recipe.environment, seed)
    episodes = play(
        "dream",
        policy,
        environment,
        "dream",
        repeated,
        recipe,
        grpo.temperature,
        seed,
        renamings=renamings,
        follow=follow,
    )
    made_by = made_here(recipe.seed, round, policy.sha256, experience_model.sha256)
    store_shard(episodes, made_by, recipe.retrieval, first * grpo.group_size)
    return put_trajectories(episodes)


def _measured(episodes: list[Trajectory], tag: str) -> dict[str, float | int | str]:
    success = sum(t.success for t in episodes) / len(episodes)
    return {"dream_success": success, "num_broken": sum(t.failure is not None for t in episodes), "table_tag": tag}
