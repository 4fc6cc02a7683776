"""Train the policy: one round of GRPO updates on fresh groups, dreamt or real (paper, Eq. 3)."""

from typing import Any

from infra.context import run_context
from models.methods.curriculum import group_entropies
from models.methods.groups import informative_groups
from models.methods.objective import GrpoOptions
from models.training.jobs import PolicyUpdateJob
from schemas.recipes.recipe import GrpoRecipe, TrainingRecipe
from schemas.records import Reference, Trajectory
from tasks.learning.run_training import updated
from tasks.running.artifacts import get_trajectories, put_model
from tasks.running.versioned import versioned_task


@versioned_task
def train_policy(
    policy: Reference,
    reference_policy: Reference,
    groups: Reference,
    recipe: GrpoRecipe,
    training: TrainingRecipe,
    stage: str,
    round: int,
) -> dict[str, Any]:
    """Return the policy after a round, its metrics, and the reward entropy of the round's tasks.

    Args:
        policy: Policy to train, with the state of its optimiser if it was trained before.
        reference_policy: Reference policy of the KL term: the starting policy of the stage.
        groups: Trajectories, group_size of each task next to each other.
        recipe: Settings of the update.
        training: Whether all weights are trained, or the policy's adapters.
        stage: Source of the groups: dream or real.
        round: Number of the round, counted from 0.
    """
    options = grpo_options(recipe, training, round)
    episodes = group_by_size(get_trajectories(groups), recipe.group_size)
    scored, counts = informative_groups(episodes, options)
    entropies = group_entropies(episodes)
    metrics = {f"groups_{reason}": count for reason, count in counts.items()}
    metrics |= _round_metrics(episodes, stage) | {"reward_entropy": sum(entropies.values()) / max(1, len(entropies))}
    if not scored:
        return {"policy": policy, "metrics": metrics, "entropies": entropies}
    model, state, learnt = updated(
        policy, reference_policy, PolicyUpdateJob(scored, options), training, f"train {stage}"
    )
    run_context().display.used(f"train {stage}", sum(len(t.ids) for g in scored for t in g.tokens))
    return {
        "policy": put_model(model, policy, state, round=round),
        "metrics": metrics | learnt,
        "entropies": entropies,
    }


def grpo_options(recipe: GrpoRecipe, training: TrainingRecipe, round: int) -> GrpoOptions:
    """Return the options of the GRPO update in a round, from the recipe's sections."""
    shared = recipe.model_dump(exclude={"groups_per_round", "group_size", "decay_per_round", "renamed_share"})
    shared["learning_rate"] *= recipe.decay_per_round**round
    return GrpoOptions(**shared, tokens_per_batch=training.tokens_per_batch)


def group_by_size(trajectories: list[Trajectory], size: int) -> list[list[Trajectory]]:
    """Split trajectories into groups of neighbours."""
    return [trajectories[start : start + size] for start in range(0, len(trajectories), size)]


def _round_metrics(groups: list[list[Trajectory]], stage: str) -> dict[str, float]:
    episodes = [t for group in groups for t in group if not t.failure]
    if not episodes:
        return {}
    count = len(episodes)
    return {
        f"{stage}_success": sum(t.success for t in episodes) / count,
        "steps_per_episode": sum(len(t.turns) for t in episodes) / count,
        "truncated": sum(t.truncated for t in episodes) / count,
    }
