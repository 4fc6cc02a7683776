"""Cloning of the policy, and what it learns before from other actions than the demonstrated ones."""

from collections.abc import Sequence

from flows.loop.lineage import Lineage, log
from infra.context import run_context
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from tasks.data.annotate import annotate
from tasks.learning.clone_policy import clone_policy
from tasks.learning.learn_consequences import learn_consequences
from tasks.playing.try_alternatives import try_alternatives


def gain_early_experience(recipe: Recipe, made: Lineage, experience_model: Reference | None) -> None:
    """Try alternatives to the demonstrations, and train a world model on what they lead to, as the recipe says.

    Args:
        recipe: Recipe of the run.
        made: Lineage of the run, with annotated logs as its experience; alternatives and world model are added.
        experience_model: Model that predicts what the alternatives lead to; None: they are taken for real.
    """
    artifacts, early, seed = made.artifacts, recipe.start.early_experience, recipe.seed
    logs, played = artifacts.experience, recipe.play if experience_model else recipe.real_play
    proposer = _cloned(recipe, artifacts.backbone, logs) if early.proposed_by == "policy" else None
    with run_context().display.one_line("alternatives") as conclude:
        tried = try_alternatives(logs, played, proposer, experience_model)
        conclude(f"{tried.notes['num_episodes']:,} for {tried.notes['num_states']:,} demonstrated actions")
    made.real_interactions["start"] = int(tried.notes["num_real_steps"])
    log("early experience", tried.notes)
    if early.world_model:
        artifacts.world_model = learn_consequences(
            artifacts.backbone, logs, tried, recipe.start, recipe.policy, recipe.training, recipe.environment, seed
        )
    if early.reflections:
        tried = annotate(tried, recipe.annotate, recipe.environment, recipe.retrieval, seed, store=False)
    artifacts.alternatives = tried


def cloned(recipe: Recipe, made: Lineage, logs: list[Reference], wins: Sequence[Reference] = ()) -> Reference:
    """Return a policy cloned from logs and wins, with the early experience that the run has gained."""
    artifacts = made.artifacts
    cloned_from = artifacts.world_model if "world_model" in artifacts else artifacts.backbone
    reflected_on = [artifacts.alternatives] if recipe.start.early_experience.reflections else []
    return _cloned(recipe, cloned_from, logs, wins, reflected_on)


def _cloned(
    recipe: Recipe,
    backbone: Reference,
    logs: list[Reference],
    wins: Sequence[Reference] = (),
    alternatives: Sequence[Reference] = (),
) -> Reference:
    asked, shown, training, environment = recipe.start, recipe.policy, recipe.training, recipe.environment
    return clone_policy(backbone, logs, asked, shown, training, environment, recipe.seed, wins, alternatives)
