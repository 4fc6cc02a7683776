"""Open a stored policy, to act outside of runs."""

from flows.runs.find_policy import FoundPolicy
from flows.runs.reopen_run import reopen_run
from infra.progress.progress import Display
from models.rollout.agent import Agent
from models.text.policies.policy_formats import open_policy_format
from schemas.errors import InputError
from schemas.recipes.recipe import Recipe
from tasks.running.artifacts import get_frozen_model
from tasks.running.engines import open_engine


def open_policy(found: FoundPolicy, display: Display, seed: int = 0) -> Agent:
    """Return a policy that is shown tasks and states as in its run.

    Args:
        found: Policy to open; every file of it is verified.
        display: Shows progress.
        seed: Seed of sampled actions.

    Raises:
        InputError: no run of this home produced the policy.
        StorageError: a file of the policy is missing from the object store, or MLflow cannot be used.
        IntegrityError: a file does not match its digest.
    """
    recipe = reopen_run_of(found, display)
    engine = open_engine("policy", found.reference, recipe.engine, seed, recipe.policy.max_episode_tokens)
    return Agent(engine, open_policy_format(get_frozen_model(found.reference).format, recipe.policy))


def reopen_run_of(found: FoundPolicy, display: Display) -> Recipe:
    """Make a policy's run the current one and return its recipe.

    Raises:
        InputError: no run of this home produced it.
    """
    if found.summary is None:
        raise InputError(f"{found.title} was produced by no run of this home: the record with its prompts is gone")
    return reopen_run(found.summary, display)
