"""Measure the experience model on held-out real transitions: the starting policy's own, on valid tasks.

in:  the experience model, the starting policy
out: teacher-forced fidelity metrics
"""

from dataclasses import replace

from infra.context import run_context
from infra.environments.by_name import open_environment
from models.examples.supervised import situations_of
from models.measurement.fidelity import fidelity
from schemas.recipes.recipe import PlayRecipe
from schemas.records import Reference
from tasks.data.retrieval_index import encoder_of
from tasks.data.rows import trajectory_id
from tasks.playing.play import open_experience_model, play_real
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task


@versioned_task
def measure_fidelity(
    experience_model: Reference,
    policy: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    temperature: float,
) -> dict[str, float]:
    """Return fidelity metrics on the distribution that matters: what the policy does at its training temperature."""
    use_threads()
    with run_context().display.timed("make games"):
        tasks = open_environment(recipe.environment).tasks("valid", recipe.environment.num_valid_tasks)
    played = play_real("fidelity", policy, recipe, tasks, temperature, recipe.seed)
    episodes = [episode for episode in played if not episode.failure]
    situations = [
        replace(situation, trajectory_id=trajectory_id(episode))
        for episode in episodes
        for situation in situations_of(episode, recipe.experience)
    ]
    truth = [turn.step for episode in episodes for turn in episode.turns]
    predictor = open_experience_model(experience_model, experience, recipe, recipe.seed)
    with run_context().display.stage("fidelity"):
        encoder = encoder_of(recipe.retrieval.encoder, recipe.retrieval.revision)
        return fidelity(predictor, situations, truth, encoder)
