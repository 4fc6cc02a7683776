"""Prefer the better of two logged episodes of one task (offline DPO; RLHI, arXiv 2509.25137).

in:  cloned policy, logged trajectories
out: starting policy
"""

from models.examples.preferences import differing, preference_group
from models.text.policies.policy_formats import open_policy_format
from models.training.jobs import PolicyUpdateJob
from schemas.recipes.learning import RlRecipe, StartRecipe
from schemas.recipes.networks import TrainingRecipe
from schemas.recipes.policy import PolicyRecipe
from schemas.records import Reference
from tasks.learning.run_training import updated
from tasks.running.artifacts import get_frozen_model, get_trajectories, put_model
from tasks.running.versioned import versioned_task


@versioned_task
def learn_preferences(
    policy: Reference,
    trajectories: list[Reference],
    recipe: StartRecipe,
    shown: PolicyRecipe,
    updates: RlRecipe,
    training: TrainingRecipe,
    seed: int,
) -> Reference:
    """Return the policy after DPO on pairs of logged episodes; as it was if no task has better and worse ones.

    A pair is two episodes of one task with different returns: a rating or a correction that the log has as a reward.

    Differs: RLHI rewrites an answer after a user's complaint; here both episodes are in the log.

    Args:
        policy: Policy to train, and the reference of the loss.
        trajectories: Logged trajectories.
        recipe: Start, with the settings of the preferences.
        shown: What the policy reads and writes.
        updates: Settings of the updates, whose number follows from the pairs.
        training: Whether all weights are trained, or adapters.
        seed: Seed of the draw of the pairs.
    """
    asked, format = recipe.preferences, open_policy_format(get_frozen_model(policy).format, shown)
    tasks = differing(get_trajectories(*trajectories))
    groups = [
        preference_group(format, several, f"{task}/{number}")
        for number in range(asked.pairs_per_task)
        for task, several in tasks.items()
    ]
    if not groups:
        return policy
    count = max(1, len(groups) // asked.pairs_per_update)
    options = updates.model_copy(update={"updates_per_round": count})
    update = PolicyUpdateJob(groups, options, seed, training.tokens_per_batch)
    model, _, metrics = updated(policy, policy, update, training, "preferences")
    return put_model(model, policy, num_pairs=len(groups), preferred=metrics["preferred"], loss=metrics["loss"])
