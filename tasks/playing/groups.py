"""Groups of a round: their seeds, shards and names, and the share of their refused actions."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from infra.environments.by_name import admissible_actions_of
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import Trajectory

_BETWEEN_SEEDS = 1_000_003
_BETWEEN_ATTEMPTS = 3_333_337
_BETWEEN_SHARDS = 10_000_019
_BETWEEN_PARTS = 100_000_007
"""Seed offsets between two recipe seeds, attempts at an episode, shards, and parts of a round."""


def seed_of_round(seed: int, round: int, part: int = 0) -> int:
    """Return the seed of a part of a round, given the recipe's seed."""
    return seed * _BETWEEN_SEEDS + round + part * _BETWEEN_PARTS


def seed_of_shard(seed: int, shard: int) -> int:
    """Return the seed of a shard, given that of the first one."""
    return seed + shard * _BETWEEN_SHARDS


def seed_of_attempt(seed: int, attempt: int) -> int:
    """Return the seed of a further attempt at episodes that failed, given that of the first one."""
    return seed + attempt * _BETWEEN_ATTEMPTS


def edges_of_shards(num_items: int, num_shards: int) -> list[tuple[int, int]]:
    """Return where each shard of equal size begins and ends: neighbours stay together."""
    edges = [num_items * shard // num_shards for shard in range(num_shards + 1)]
    return list(pairwise(edges))


def name_of_part(name: str, part: int, separator: str = "-") -> str:
    """Return the name of a part of a round: that of the round for the first part, which is usually the only one."""
    return f"{name}{separator}{part}" if part else name


def named_groups(episodes: Sequence[Trajectory], round: str) -> list[Trajectory]:
    """Return episodes with the id of their group: those of a task that were rolled out in a round."""
    return [replace(one, group_id=f"{round}/{one.task.task_id}") for one in episodes]


def refused_share(episodes: Sequence[Trajectory], environment: EnvironmentRecipe) -> float:
    """Return the share of actions that changed nothing, or that the environment's states say are refused."""
    listed = admissible_actions_of(environment)
    turns = [turn for episode in episodes for turn in episode.turns]
    refused = sum(
        turn.step.state == (listed.refused(turn.state) if listed else turn.state) and not turn.step.done
        for turn in turns
    )
    return refused / max(1, len(turns))
