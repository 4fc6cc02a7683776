"""Train the policy: one round of updates on fresh groups, dreamt or real (paper, Eq. 3)."""

from collections.abc import Sequence
from typing import Any

from infra.context import objects, run_context
from infra.environments.by_name import progress_of
from models.methods.entropies import group_entropies
from models.methods.scoring import Scoring, interleaved
from models.methods.streams import TrainingGroup
from models.rollout.wins import shortest_successes
from models.training.demonstrated_policy import DemonstratedPolicy
from models.training.jobs import PolicyUpdateJob
from models.training.trained_logprobs import divergence
from schemas.recipes.learning import RlRecipe
from schemas.recipes.networks import TrainingRecipe
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import Reference, Trajectory
from tasks.learning.run_training import updated
from tasks.running.artifacts import get_frozen_model, get_trajectories, put_model
from tasks.running.versioned import versioned_task


@versioned_task
def train_policy(
    policy: Reference,
    reference_policy: Reference,
    groups: list[Reference],
    recipe: RlRecipe,
    training: TrainingRecipe,
    environment: EnvironmentRecipe,
    stage: str,
    round: int,
    earlier: Sequence[Reference] = (),
    values: Reference | None = None,
    demonstrations: Sequence[Reference] = (),
) -> dict[str, Any]:
    """Return the policy after a round, and its metrics.

    Args:
        policy: Policy to train, with the state of its optimiser if it was trained before.
        reference_policy: Starting policy of the stage, which losses may refer to.
        groups: Trajectories of the round's groups.
        recipe: Settings of the update.
        training: Whether all weights are trained, or the policy's adapters.
        environment: Environment of the episodes, for rewards that count progress.
        stage: Source of the groups: dream or real.
        round: Number of the round, counted from 0.
        earlier: Trajectories of earlier rounds of the stage, for a recipe that replays some.
        values: Values of states of the groups, for an advantage that asks for them.
        demonstrations: Trajectories with real wins, for an auxiliary that shows them to the policy.
    """
    valued = {(task_id, state): value for task_id, _, state, value in objects().get_json(values)} if values else {}
    episodes, scoring = get_trajectories(*groups), Scoring.of(recipe, progress_of(environment), valued)
    fresh, counts = scoring.informative_groups(episodes)
    metrics = {f"groups_{reason}": count for reason, count in counts.items()}
    metrics |= {"groups_trained": len(fresh) / max(1, len(fresh) + sum(counts.values()))}
    metrics |= _round_metrics(episodes, stage)
    replayed = scoring.replayed_groups(get_trajectories(*earlier), episodes, round) if earlier else []
    metrics |= {"episodes_replayed": len(replayed)} if earlier else {}
    scored = interleaved(fresh, replayed)
    if not scored:
        return {"policy": policy, "metrics": metrics}
    scored = interleaved(scored, _auxiliary_groups(scoring, episodes, policy, demonstrations, recipe, training))
    update = PolicyUpdateJob(scored, recipe.in_round(round), round, training.tokens_per_batch)
    trained, state, learnt = updated(policy, reference_policy, update, training, f"train {stage}")
    num_tokens = sum(len(stream.tokens.ids) for group in scored for stream in group.streams)
    # Not display.used: a round in which few groups teach anything computes few tokens, and is not slow for that.
    run_context().display.time.used(f"train {stage}", num_tokens)
    metrics |= learnt
    if recipe.max_kl is not None:
        metrics["kl_of_round"] = divergence(trained.network, fresh, recipe.temperature, training.tokens_per_batch)
        if not metrics["kl_of_round"] <= recipe.max_kl:  # also if it is not finite
            _say_undone(metrics["kl_of_round"], recipe.max_kl, stage, round)
            return {"policy": policy, "metrics": metrics | {"undone": 1.0}}
    return {"policy": put_model(trained, policy, state, round=round), "metrics": metrics}


def _auxiliary_groups(
    scoring: Scoring,
    episodes: list[Trajectory],
    policy: Reference,
    demonstrations: Sequence[Reference],
    recipe: RlRecipe,
    training: TrainingRecipe,
) -> list[TrainingGroup]:
    """Return what the recipe's auxiliary makes of the episodes, shown real wins if it asks for them."""
    model = get_frozen_model(policy)
    shown = DemonstratedPolicy(model, _wins_of(demonstrations), recipe.temperature, training.tokens_per_batch)
    demonstrate = shown.logprobs if scoring.auxiliary.needs_demonstrations else None
    return scoring.auxiliary_groups(episodes, model.format, demonstrate)


def _say_undone(kl: float, max_kl: float, stage: str, round: int) -> None:
    run_context().display.say(
        f"undone: after {stage} round {round + 1} the KL to the policy before it is {kl:.3g} per token, and rl.max_kl is "
        f"{max_kl:g}; a lower rl.learning_rate goes less far"
    )


def _wins_of(demonstrations: Sequence[Reference]) -> list[Trajectory]:
    return shortest_successes([one for one in get_trajectories(*demonstrations) if one.origin == "real"])


def _round_metrics(trajectories: list[Trajectory], stage: str) -> dict[str, float]:
    """Return what the round's episodes were like, failed ones aside."""
    entropies = group_entropies(trajectories)
    metrics = {"reward_entropy": sum(entropies.values()) / max(1, len(entropies))}
    episodes = [trajectory for trajectory in trajectories if not trajectory.failure]
    if not episodes:
        return metrics
    num_turns = sum(len(episode.turns) for episode in episodes)
    num_action_tokens = sum(sum(stream.is_action) for episode in episodes for stream in episode.tokens)
    return metrics | {
        f"{stage}_success": sum(episode.success for episode in episodes) / len(episodes),
        "steps_per_episode": num_turns / len(episodes),
        "truncated": sum(episode.truncated for episode in episodes) / len(episodes),
        "tokens_per_action": num_action_tokens / num_turns,
    }
