"""Implicit world modelling: the backbone learns what actions lead to (Early Experience, arXiv 2510.08558, section 4.2).

in:  backbone, demonstrations, alternatives to them
out: backbone that a policy is cloned from, with the number of updates that this took from the cloning
"""

from infra.environments.by_name import open_environment
from models.examples.early_experience import consequence_example
from models.text.renaming import renamed
from schemas.recipes.learning import StartRecipe
from schemas.recipes.networks import TrainingRecipe
from schemas.recipes.policy import PolicyRecipe
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import Reference
from tasks.learning.clone_policy import cloning_examples, logged_demonstrations
from tasks.learning.namings import renamers_in_turn
from tasks.learning.run_training import fine_tuned, num_updates
from tasks.running.artifacts import get_frozen_model, get_trajectories, put_model
from tasks.running.versioned import versioned_task


@versioned_task
def learn_consequences(
    backbone: Reference,
    trajectories: list[Reference],
    alternatives: Reference,
    recipe: StartRecipe,
    shown: PolicyRecipe,
    training: TrainingRecipe,
    environment: EnvironmentRecipe,
    seed: int,
) -> Reference:
    """Train the backbone for one epoch on the alternatives' last steps, with at most half of the cloning's updates.

    Args:
        backbone: Network to train.
        trajectories: Logged trajectories whose successes are cloned afterwards.
        alternatives: Episodes that end with another action.
        recipe: Settings of the cloning.
        shown: What the policy reads and writes.
        training: Whether all weights are trained, or adapters.
        environment: Environment whose entity names may be replaced.
        seed: Random seed.
    """
    model, real = get_frozen_model(backbone), open_environment(environment)
    tried = get_trajectories(alternatives)
    if not tried:
        return backbone
    namings = renamers_in_turn(tried, recipe.renamed_copies, model, real, seed)
    examples = [
        consequence_example(model.format, renamed(one, new), shown.history_length)
        for one, new in zip(tried, namings, strict=True)
    ]
    cloned = cloning_examples(logged_demonstrations(trajectories, recipe), model, recipe, shown, real, seed)
    count = min(num_updates(examples, recipe.sft, epochs=1), max(1, num_updates(cloned, recipe.sft) // 2))
    trained = fine_tuned(backbone, examples, recipe.sft, training, seed, "world model", count)
    return put_model(trained, backbone, updates_taken_from_cloning=count)
