"""Set up rollouts in the experience model or in the real environment."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from infra.context import run_context
from infra.environments.by_name import admissible_actions_of, open_environment
from models.experience.experience_model import Dream, ExperienceModel
from models.methods.judges import open_judge
from models.rollout.independent_rollout import IndependentRollout
from models.rollout.rollouts import Rollout, RolloutOptions, RolloutProgress
from models.text.renaming import EntityRenaming
from schemas.ports import Engine, Environment
from schemas.recipes.recipe import PlayRecipe, RealPlayRecipe
from schemas.records import AgentTask, Failure, Origin, Reference, Trajectory
from tasks.data.retrieval_index import index_over
from tasks.playing.groups import seed_of_attempt
from tasks.playing.open_actor import open_actor
from tasks.running.predictors import open_predictor

_NUM_ATTEMPTS = 3
"""Maximum number of attempts at a real episode."""


def dream_environment(experience_model: Reference, experience: list[Reference], recipe: PlayRecipe, seed: int) -> Dream:
    """Return the experience model as an environment, grounded in these trajectories."""
    return Dream(open_experience_model(experience_model, experience, recipe, seed))


def open_experience_model(
    reference: Reference, experience: list[Reference], recipe: PlayRecipe, seed: int
) -> ExperienceModel:
    """Open an experience model with the settings of the recipe."""
    asked, retrieval = recipe.experience, recipe.retrieval
    index = index_over(retrieval, experience) if retrieval.num_demonstrations else None
    predictor = open_predictor(reference, recipe.engine, asked, seed)
    listed = admissible_actions_of(recipe.environment) if asked.enforce_admissible_actions else None
    judge = open_judge(asked.judge)
    return ExperienceModel(predictor, index, asked, retrieval.num_demonstrations, listed, judge)


def play(
    stage: str,
    policy: Reference,
    environment: Environment,
    origin: Origin,
    tasks: Sequence[AgentTask],
    recipe: RealPlayRecipe,
    temperature: float,
    seed: int,
    *,
    renamings: Mapping[str, EntityRenaming] = MappingProxyType({}),
    follow: bool = False,
) -> list[Trajectory]:
    """Play one episode per task, with progress under a stage's name; success is shown as real or dream success.

    Renamings, by task id, change the names that the policy is shown. With follow, episodes go on with the policy's
    successor as soon as it has one.
    """
    actor, max_steps = open_actor(policy, recipe, seed, follow=follow), recipe.environment.max_steps
    options = RolloutOptions(temperature, max_steps, actor.max_episode_tokens, recipe.policy.num_slots)
    kind = IndependentRollout if _batched_by_servers(actor.engine, environment) else Rollout
    rollout = kind(actor.engine, actor.format, environment, origin, options, renamings)
    started = time.monotonic()
    with run_context().display.stage(stage) as report:

        def show(progress: RolloutProgress) -> None:
            speed = f"{progress.num_tokens / (time.monotonic() - started) / 1000:.1f}k tokens/s"
            success = f"{origin} {progress.num_successes / progress.num_done:.0%}, " if progress.num_done else ""
            report(progress.num_done, progress.num_total, "episodes", success + speed)

        trajectories = rollout.play(tasks, show)
    run_context().display.used(stage, rollout.num_tokens)
    run_context().display.time.met(stage, rollout.limits)
    run_context().display.time.failed(stage, Counter(one.failure.value for one in trajectories if one.failure))
    return trajectories


def _batched_by_servers(engine: Engine, environment: Environment) -> bool:
    """Return whether episodes need not wait for each other: servers batch what policy and experience model are asked."""
    return engine.batches_requests and isinstance(environment, Dream) and environment.batches_requests


def play_real(
    stage: str,
    policy: Reference,
    recipe: RealPlayRecipe,
    tasks: Sequence[AgentTask],
    temperature: float,
    seed: int,
    renamings: Mapping[str, EntityRenaming] = MappingProxyType({}),
) -> list[Trajectory]:
    """Play one real episode per task; see play. Episodes in which the environment failed are repeated up to twice."""
    environment = open_environment(recipe.environment)

    def played(some: Sequence[AgentTask], seed: int) -> list[Trajectory]:
        return play(stage, policy, environment, "real", some, recipe, temperature, seed, renamings=renamings)

    episodes = played(tasks, seed)
    for attempt in range(1, _NUM_ATTEMPTS):
        failed = [i for i, episode in enumerate(episodes) if episode.failure is Failure.ENVIRONMENT]
        if not failed:
            break
        why = episodes[failed[0]].turns[-1].step.reasoning
        run_context().display.say(
            f"{stage}: the environment failed in {len(failed)} of {len(tasks)} episodes ({why}); retrying them"
        )
        again = played([tasks[i] for i in failed], seed_of_attempt(seed, attempt))
        for i, episode in zip(failed, again, strict=True):
            episodes[i] = episode
    return episodes
