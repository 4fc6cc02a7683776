"""Dream groups of episodes of the round's tasks inside the experience model (paper, section 4.1).

in:  tasks, policy, experience model, the trajectories that it may retrieve
out: dreamt trajectories, group by group; their rows in `transitions` with origin dream
"""

from dataclasses import replace

from schemas.recipes.learning import RolloutRecipe
from schemas.recipes.recipe import PlayRecipe
from schemas.records import Reference, Trajectory
from tasks.data.provenance import made_here
from tasks.data.store_rows import pin_rows, store_shard
from tasks.playing.entity_renaming import draw_entity_renamings
from tasks.playing.groups import (
    edges_of_shards,
    name_of_part,
    named_groups,
    refused_share,
    seed_of_round,
    seed_of_shard,
)
from tasks.playing.play import dream_environment, play
from tasks.running.artifacts import get_tasks, get_trajectories, put_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task
from tasks.running.workers import by_workers


@versioned_task
def dream(
    tasks: Reference,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    rollouts: RolloutRecipe,
    round: int,
    part: int = 0,
    num_shards: int = 1,
    max_staleness: int = 0,
) -> Reference:
    """Play groups of dreamt episodes, group_size of each task next to each other, divided into shards.

    Args:
        tasks: Tasks to dream, one group each.
        policy: Policy that acts.
        experience_model: Model that answers.
        experience: Trajectories that it may retrieve.
        recipe: Sections that decide how an episode goes.
        rollouts: Size of the groups, temperature and entity renaming.
        round: Number of the round, counted from 0.
        part: Number of the part of the round, counted from 0; a curriculum may ask for several.
        num_shards: Number of shards, each with a seed of its own.
        max_staleness: If positive, the policy is trained meanwhile, and episodes under way go on with its newest weights.
    """
    follow = max_staleness > 0
    calls = [
        (tasks, policy, experience_model, experience, recipe, rollouts, round, part, num_shards, follow, shard)
        for shard in range(num_shards)
    ]
    shards = by_workers("dream", dream_shard, calls, None if follow else recipe.engine)
    dreamt = shards[0] if num_shards == 1 else put_trajectories(get_trajectories(*shards))
    tag = pin_rows(name_of_part(f"dream-{round}", part))
    return replace(dreamt, notes=dreamt.notes | _measured(get_trajectories(dreamt), recipe, tag))


def dream_shard(
    tasks: Reference,
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    rollouts: RolloutRecipe,
    round: int,
    part: int,
    num_shards: int,
    follow: bool,
    shard: int,
) -> Reference:
    """Play one of num_shards equal parts of the groups, all neighbours, and store their rows."""
    use_threads()
    seed = seed_of_shard(seed_of_round(recipe.seed, round, part), shard)
    environment = dream_environment(experience_model, experience, recipe, seed)
    drawn = get_tasks(tasks)
    first, end = edges_of_shards(len(drawn), num_shards)[shard]
    repeated = [task for task in drawn[first:end] for _ in range(rollouts.group_size)]
    renamings = draw_entity_renamings(drawn[first:end], rollouts.entity_renaming, policy, recipe.environment, seed)
    episodes = play(
        "dream",
        policy,
        environment,
        "dream",
        repeated,
        recipe,
        rollouts.temperature,
        seed,
        renamings=renamings,
        follow=follow,
    )
    grouped = named_groups(episodes, f"dream-{round}")
    made_by = made_here(recipe.seed, round, policy.sha256, experience_model.sha256)
    store_shard(grouped, made_by, recipe.retrieval, first * rollouts.group_size)
    return put_trajectories(grouped)


def _measured(episodes: list[Trajectory], recipe: PlayRecipe, tag: str) -> dict[str, float | int | str]:
    return {
        "dream_success": sum(t.success for t in episodes) / len(episodes),
        "num_broken": sum(t.failure is not None for t in episodes),
        "refused_actions": refused_share(episodes, recipe.environment),
        "table_tag": tag,
    }
