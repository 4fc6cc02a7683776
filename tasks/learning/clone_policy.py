"""Clone the starting policy: supervised learning on logged successes (the paper's SFT baseline)."""

import random
from collections.abc import Sequence

from infra.environments.by_name import open_environment
from models.network.language_model import LanguageModel
from models.text.renaming import name_pieces, renamed, to_invented_names
from models.training.examples import policy_examples
from schemas.errors import DataError
from schemas.ports import RealEnvironment
from schemas.recipes.learning import StartRecipe
from schemas.recipes.networks import TrainingRecipe
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import Reference, Trajectory
from tasks.learning.run_training import fine_tuned
from tasks.running.artifacts import get_frozen_model, get_trajectories, put_model
from tasks.running.versioned import versioned_task


@versioned_task
def clone_policy(
    backbone: Reference,
    trajectories: list[Reference],
    recipe: StartRecipe,
    training: TrainingRecipe,
    environment: EnvironmentRecipe,
    seed: int,
    wins: Sequence[Reference] = (),
) -> Reference:
    """Train the backbone to act like the shortest logged success of each of the first tasks that have one.

    Args:
        backbone: Network to train.
        trajectories: Logged trajectories.
        recipe: Number of demonstrations and their renamed copies, and the settings of the training.
        training: Whether all weights are trained, or adapters.
        environment: Environment whose entity names may be replaced.
        seed: Random seed.
        wins: The policy's own wins, all of which are cloned as well: of each task, the shortest success.

    Raises:
        DataError: no trajectory succeeds.
    """
    model = get_frozen_model(backbone)
    logged = logged_demonstrations(trajectories, recipe)
    demonstrations = shortest_successes([*logged, *get_trajectories(*wins)])
    if not demonstrations:
        raise DataError("no logged trajectory succeeds, so there is nothing to clone: log some successes")
    shown = with_renamed_copies(demonstrations, recipe.renamed_copies, model, open_environment(environment), seed)
    examples = [
        example
        for episode in shown
        for example in policy_examples(
            model.format, episode, recipe.history_length, remember_episode=recipe.remember_episode
        )
    ]
    stage = "consolidation" if wins else "start policy"
    trained = fine_tuned(backbone, examples, recipe.sft, training, seed, stage)
    return put_model(trained, backbone, num_demonstrations=len(demonstrations))


def logged_demonstrations(trajectories: Sequence[Reference], recipe: StartRecipe) -> list[Trajectory]:
    """Return the shortest logged success of each of the first tasks that have one."""
    return shortest_successes(get_trajectories(*trajectories))[: recipe.num_demonstrations]


def shortest_successes(episodes: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the shortest success of each task, in the order of the tasks, which takes families in turn."""
    shortest: dict[str, Trajectory] = {}
    for episode in episodes:
        if episode.success:
            best = shortest.setdefault(episode.task.task_id, episode)
            shortest[episode.task.task_id] = min(best, episode, key=lambda t: len(t.turns))
    return list(shortest.values())


def with_renamed_copies(
    episodes: list[Trajectory], copies: int, model: LanguageModel, environment: RealEnvironment, seed: int
) -> list[Trajectory]:
    """Return the episodes, and copies of each with invented names."""
    rng = random.Random(seed)
    pieces = name_pieces(model.tokenizer.get_vocab())
    renamed_ones = [
        renamed(one, to_invented_names(environment.names(one.task_as_it_began), [one], rng, pieces))
        for one in episodes
        for _ in range(copies)
    ]
    return episodes + renamed_ones
