"""Try other actions than the demonstrated ones (Early Experience, arXiv 2510.08558, section 4.1).

in:  logged trajectories whose successes are cloned
out: episodes along them that end with another action, without reasoning
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from infra.context import run_context
from infra.environments.by_name import open_environment
from models.rollout.alternatives import forks, taken_for_real, taken_in_a_dream
from models.rollout.proposals import Proposals, proposed_by_environment, proposed_by_policy
from models.text.policies.policy_formats import open_policy_format
from schemas.recipes.recipe import PlayRecipe, RealPlayRecipe
from schemas.records import Reference, Trajectory
from tasks.learning.clone_policy import logged_demonstrations
from tasks.playing.play import dream_environment
from tasks.running.artifacts import get_frozen_model, put_trajectories
from tasks.running.device import use_threads
from tasks.running.engines import open_engine
from tasks.running.versioned import versioned_task


@versioned_task
def try_alternatives(
    trajectories: list[Reference],
    recipe: RealPlayRecipe | PlayRecipe,
    proposer: Reference | None = None,
    experience_model: Reference | None = None,
) -> Reference:
    """Take up to K other actions in each state of the demonstrations that are cloned, and note the real steps it took.

    Args:
        trajectories: Logged trajectories.
        recipe: Settings of the environment, the engine and the start; of a dream, too, if there is one.
        proposer: Policy that proposes actions; None: the environment does.
        experience_model: Model that predicts their steps; None: they are taken for real.
    """
    use_threads()
    demonstrations = logged_demonstrations(trajectories, recipe.start)
    with run_context().display.stage("alternatives"):
        proposals, num_walked = _proposals(demonstrations, recipe, proposer)
        asked = forks(demonstrations, proposals)
        if experience_model and isinstance(recipe, PlayRecipe):
            dream = dream_environment(experience_model, trajectories, recipe, recipe.seed)
            taken, num_taken = taken_in_a_dream(asked, dream), 0
        else:
            taken, num_taken = taken_for_real(asked, open_environment(recipe.environment))
    seen = recipe.policy.history_length + 1
    return put_trajectories(
        [replace(one, turns=one.turns[-seen:]) for one in taken],
        num_states=sum(len(one.turns) for one in demonstrations),
        num_left_out=len(asked) - len(taken),
        num_real_steps=num_walked + num_taken,
    )


def _proposals(
    demonstrations: Sequence[Trajectory], recipe: RealPlayRecipe, proposer: Reference | None
) -> tuple[Proposals, int]:
    """Return other actions for each state, and the number of real steps that it took to find them."""
    num_wanted, rng = recipe.start.early_experience.alternatives, random.Random(recipe.seed)
    if proposer is None:
        return proposed_by_environment(demonstrations, open_environment(recipe.environment), num_wanted, rng)
    engine = open_engine("policy", proposer, recipe.engine, recipe.seed, recipe.policy.max_episode_tokens)
    format = open_policy_format(get_frozen_model(proposer).format, recipe.policy)
    return proposed_by_policy(demonstrations, engine, format, num_wanted, rng), 0
