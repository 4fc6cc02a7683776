"""Groups of a round, dreamt or real: as many as the recipe says, and further ones while the curriculum asks for them."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from flows.loop.lineage import Lineage
from models.methods.auxiliaries import Auxiliary
from models.methods.curricula import Curriculum
from models.methods.method import open_method
from models.methods.replays import Replay
from schemas.recipes.learning import RlRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from tasks.curriculum.propose_tasks import observe_groups, propose_tasks
from tasks.playing.dream import dream
from tasks.playing.play_real_groups import play_real_groups


def dream_round(
    recipe: Recipe,
    pool: Reference,
    state: dict[str, Any],
    policy: Reference,
    model: Reference,
    experience: list[Reference],
    round: int,
) -> list[Reference]:
    """Dream the groups of a round; see dream and propose_tasks."""
    drawn: list[Reference] = []
    needs_wins = open_method(Curriculum, recipe.curriculum.method).needs_wins
    starts = (experience[:1], round / recipe.dream.num_rounds) if needs_wins else ()  # the annotated logs come first

    def part(num_groups: int, played: list[Reference]) -> Reference | None:
        tasks = propose_tasks(pool, state, recipe.curriculum, num_groups, recipe.seed, round, drawn, *starts)
        if tasks.notes["num_tasks"] == 0:
            return None
        drawn.append(tasks)
        shards, staleness = recipe.dream.num_shards, recipe.dream.max_staleness
        number = len(played)
        return dream(
            tasks, policy, model, experience, recipe.play, recipe.rl.rollouts, round, number, shards, staleness
        )

    return _filled(recipe, state, part)


def real_round(
    recipe: Recipe, pool: Reference, state: dict[str, Any], policy: Reference, round: int
) -> list[Reference]:
    """Play the groups of a round in the real environment; see play_real_groups."""

    def part(num_groups: int, played: list[Reference]) -> Reference | None:
        groups = play_real_groups(
            pool,
            state,
            policy,
            recipe.play,
            recipe.curriculum,
            recipe.rl.rollouts,
            num_groups,
            "real rollouts",
            round,
            played,
        )
        return groups if groups.notes["num_episodes"] else None

    return _filled(recipe, state, part)


def _filled(
    recipe: Recipe, state: dict[str, Any], play_part: Callable[[int, list[Reference]], Reference | None]
) -> list[Reference]:
    """Play parts of a round until the curriculum asks for no more groups, or there are no more tasks."""
    parts: list[Reference] = []
    missing = recipe.rl.groups_per_round
    while missing and (part := play_part(missing, list(parts))):
        parts.append(part)
        missing = _observed(recipe, state, parts)["missing"]
    return parts


def is_validated_after(round: int, num_rounds: int, every: int) -> bool:
    """Return whether the policy is played on valid tasks after a round, counted from 0: every so often, and at the end."""
    return (round + 1) % every == 0 or round + 1 == num_rounds


def observe(recipe: Recipe, made: Lineage, groups: list[Reference]) -> None:
    """Let the curriculum take note of the groups of a round."""
    made.curriculum = _observed(recipe, made.curriculum, groups)["state"]


def _observed(recipe: Recipe, state: dict[str, Any], groups: list[Reference]) -> dict[str, Any]:
    return observe_groups(groups, state, recipe.curriculum, recipe.rl.groups_per_round)


def earlier_rounds(rl: RlRecipe, rounds: Sequence[list[Reference]]) -> list[Reference]:
    """Return the groups of the rounds so far that the recipe's replay chooses from."""
    num_rounds = open_method(Replay, rl.replay).num_rounds
    return [part for parts in rounds[-num_rounds:] for part in parts] if num_rounds else []


def demonstrations(recipe: Recipe, made: Lineage) -> list[Reference]:
    """Return the annotated logs if the recipe's auxiliary shows the policy wins, else nothing."""
    return made.artifacts.experience[:1] if open_method(Auxiliary, recipe.rl.auxiliary).needs_demonstrations else []


def rollout_metrics(groups: Sequence[Reference]) -> dict[str, float]:
    """Return metrics of the groups of a round that only the rollout knows."""
    refused = fmean(float(one.notes["refused_actions"]) for one in groups)
    return {"refused_actions": refused, "parts_played": len(groups)}
