"""Clone the starting policy: supervised learning on logged successes (the paper's SFT baseline)."""

from collections.abc import Sequence

from infra.environments.by_name import open_environment
from models.examples.early_experience import reflection_example
from models.examples.supervised import policy_examples
from models.network.language_model import LanguageModel
from models.rollout.wins import shortest_successes
from models.text.policies.plain_policy import PlainPolicy
from models.text.policies.policy_formats import open_policy_format
from models.text.renaming import Renamer, renamed
from models.training.sft import Example
from schemas.errors import DataError
from schemas.ports import RealEnvironment
from schemas.recipes.learning import StartRecipe
from schemas.recipes.networks import TrainingRecipe
from schemas.recipes.policy import PolicyRecipe
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import Reference, Trajectory
from tasks.learning.namings import renamers_in_turn, with_renamed_copies
from tasks.learning.run_training import fine_tuned, num_updates
from tasks.running.artifacts import get_frozen_model, get_trajectories, put_model
from tasks.running.versioned import versioned_task


@versioned_task
def clone_policy(
    backbone: Reference,
    trajectories: list[Reference],
    recipe: StartRecipe,
    shown: PolicyRecipe,
    training: TrainingRecipe,
    environment: EnvironmentRecipe,
    seed: int,
    wins: Sequence[Reference] = (),
    alternatives: Sequence[Reference] = (),
) -> Reference:
    """Train the backbone to act like the shortest logged success of each of the first tasks that have one.

    Args:
        backbone: Network to train.
        trajectories: Logged trajectories.
        recipe: Number of demonstrations and their renamed copies, and the settings of the training.
        shown: What the policy reads and writes.
        training: Whether all weights are trained, or adapters.
        environment: Environment whose entity names may be replaced.
        seed: Random seed.
        wins: The policy's own wins, all of which are cloned as well: of each task, the shortest success.
        alternatives: Episodes along demonstrations that end with another action, to reflect on, with reasoning. They
            share the updates that cloning takes without them.

    Raises:
        DataError: no trajectory succeeds.
    """
    model, real = get_frozen_model(backbone), open_environment(environment)
    logged = logged_demonstrations(trajectories, recipe)
    demonstrations = shortest_successes([*logged, *get_trajectories(*wins)])
    if not demonstrations:
        raise DataError("no logged trajectory succeeds, so there is nothing to clone: log some successes")
    examples = cloning_examples(demonstrations, model, recipe, shown, real, seed)
    count = max(1, num_updates(examples, recipe.sft) - int(backbone.notes.get("updates_taken_from_cloning", 0)))
    tasks = {one.task.task_id for one in demonstrations}
    tried = [one for one in get_trajectories(*alternatives) if one.task.task_id in tasks]
    namings = renamers_in_turn(tried, recipe.renamed_copies, model, real, seed)
    reflected = _reflections(demonstrations, tried, namings, PlainPolicy(model.format, shown))
    stage = "consolidation" if wins else "start policy"
    trained = fine_tuned(backbone, [*examples, *reflected], recipe.sft, training, seed, stage, count)
    return put_model(trained, backbone, num_demonstrations=len(demonstrations), num_updates=count)


def cloning_examples(
    demonstrations: list[Trajectory],
    model: LanguageModel,
    recipe: StartRecipe,
    shown: PolicyRecipe,
    environment: RealEnvironment,
    seed: int,
) -> list[Example]:
    """Return every action of the demonstrations and of their renamed copies, as the policy is asked for it."""
    format = open_policy_format(model.format, shown)
    episodes = with_renamed_copies(demonstrations, recipe.renamed_copies, model, environment, seed)
    return [example for episode in episodes for example in policy_examples(format, episode)]


def _reflections(
    demonstrations: Sequence[Trajectory],
    alternatives: Sequence[Trajectory],
    namings: Sequence[Renamer],
    format: PlainPolicy,
) -> list[Example]:
    """Return a reflection on each alternative to one of the demonstrations, under the names that it is given."""
    by_task = {one.task.task_id: one for one in demonstrations}
    reflected = (
        reflection_example(format, renamed(by_task[one.task.task_id], new), renamed(one, new))
        for one, new in zip(alternatives, namings, strict=True)
    )
    return [example for example in reflected if example]


def logged_demonstrations(trajectories: Sequence[Reference], recipe: StartRecipe) -> list[Trajectory]:
    """Return the shortest logged success of each of the first tasks that have one."""
    return shortest_successes(get_trajectories(*trajectories))[: recipe.num_demonstrations]
