"""Plan of a recipe and its cost, before anything runs."""

from infra.storage.run_records import records
from models.measurement.power import Advice, advice
from schemas.errors import DataError, EnvironmentUnavailable, InputError
from schemas.recipes.recipe import Recipe
from tasks.planning.estimate import Estimate, estimated
from tasks.planning.logged import logged_episodes

_GAIN = 0.1
"""Gain in real success for which `check` reports the gate's power."""
_UNKNOWN_START = 0.5


def plan_of(recipe: Recipe) -> dict[str, int]:
    """Return counts of what a run would do, from the recipe alone; episodes are counted at their maximum length."""
    environment, rl = recipe.environment, recipe.rl
    episodes_per_round = rl.groups_per_round * rl.group_size
    logged, own = _num_logged(recipe), recipe.experience.num_on_policy_episodes
    num_calibrations = 1 + -(-recipe.dream.num_rounds // recipe.dream.calibrate_every)
    num_evaluated = 3 * environment.num_test_tasks + (num_calibrations + 1) * environment.num_valid_tasks
    num_real_rounds = recipe.real.num_rounds if environment.can_be_played else 0
    return {
        "logged_episodes": logged,
        "own_episodes": own,
        "dream_rounds": recipe.dream.num_rounds,
        "dreamt_episodes": recipe.dream.num_rounds * episodes_per_round,
        "max_dreamt_steps": recipe.dream.num_rounds * episodes_per_round * environment.max_steps,
        "policy_updates": (recipe.dream.num_rounds + num_real_rounds) * rl.updates_per_round * rl.passes_per_round,
        "consolidations": sum(
            one.num_rounds // one.consolidate_every for one in (recipe.dream, recipe.real) if one.consolidate_every
        ),
        "real_training_episodes": num_real_rounds * episodes_per_round,
        "max_real_training_steps": (num_real_rounds * episodes_per_round + _max_replays(recipe)) * environment.max_steps
        + _max_steps_of_alternatives(recipe),
        "real_evaluation_episodes": num_evaluated * recipe.evaluation.episodes_per_task * environment.can_be_played,
        "max_steps_per_episode": environment.max_steps,
        "max_teacher_requests": (logged + own + _num_reflections(recipe)) * (recipe.annotate.annotator == "teacher"),
    }


def _num_logged(recipe: Recipe) -> int:
    """Return the number of logged episodes: of those that are there, or else of those to collect."""
    if not recipe.ingest.path:
        return recipe.environment.num_train_tasks * recipe.ingest.episodes_per_task
    try:
        return len(logged_episodes(recipe.ingest))
    except DataError:
        return 0  # `missing` says why


def _max_replays(recipe: Recipe) -> int:
    """Return the maximum number of dreamt wins that consolidation replays in the real environment."""
    dream = recipe.dream
    if dream.consolidate_every == 0 or dream.consolidated_wins == "dreamt":
        return 0
    return dream.num_rounds // dream.consolidate_every * dream.consolidate_every * recipe.rl.groups_per_round


def _num_alternatives(recipe: Recipe) -> int:
    """Return the maximum number of alternatives that are tried."""
    demonstrations = recipe.start.num_demonstrations or recipe.environment.num_train_tasks
    return demonstrations * recipe.environment.max_steps * recipe.start.early_experience.alternatives


def _num_reflections(recipe: Recipe) -> int:
    return _num_alternatives(recipe) * recipe.start.early_experience.reflections


def _max_steps_of_alternatives(recipe: Recipe) -> int:
    """Return the maximum number of real steps of early experience: half a demonstration, on average, before each action.

    The environment's own lists are read along each demonstration, which takes its steps once more.
    """
    early, longest = recipe.start.early_experience, recipe.environment.max_steps
    num_alternatives = _num_alternatives(recipe)
    taken = num_alternatives * (longest + 1) // 2 * (early.executed_in == "real")
    walked = num_alternatives // max(1, early.alternatives) * (early.proposed_by == "environment")
    return taken + walked


def seen_by_the_gate(recipe: Recipe) -> Advice:
    """Return how often a gain of ten points would pass the gate.

    The starting policy's real success is that of the last run, or one half if there was none.
    """
    mine = [one for one in records() if one["recipe"]["name"] == recipe.name and "start" in one.get("results", {})]
    start = mine[-1]["results"]["start"]["real_success"] if mine else _UNKNOWN_START
    measured, num_tasks = recipe.evaluation, recipe.environment.num_test_tasks
    gain = min(_GAIN, 1 - start)
    return advice(num_tasks, measured.episodes_per_task, measured.temperature, start, gain, recipe.gate)


def estimate_of(recipe: Recipe, plan: dict[str, int]) -> Estimate | str:
    """Return the memory and time it takes here, or why they are unknown: backbone or environment may be unavailable."""
    try:
        return estimated(recipe, plan)
    except (InputError, EnvironmentUnavailable) as error:
        return str(error)


def excess_of(recipe: Recipe, estimate: Estimate | str) -> str:
    """Return why a recipe is known not to fit into memory or onto the disk, and what to change; empty if it may fit."""
    if isinstance(estimate, str):
        return ""
    if not estimate.fits:
        return _too_large(recipe, estimate)
    if estimate.disk_free is not None and estimate.disk > estimate.disk_free:
        return (
            f"{recipe.name} stores {gib(estimate.disk)} of models and optimiser states, and {gib(estimate.disk_free)} are free: "
            "free some, name a bucket (DREAMGYM_OBJECT_STORE), or try --set training.lora_rank=16"
        )
    return ""


def _too_large(recipe: Recipe, estimate: Estimate) -> str:
    """Return how much memory is missing, and what to change."""
    training = recipe.training
    changes = {
        "training.gradient_checkpointing=true": not training.gradient_checkpointing,
        "training.lora_rank=16": training.lora_rank == 0,
        f"training.tokens_per_batch={training.tokens_per_batch // 4}": training.tokens_per_batch >= 2048,
    }
    open_to = ", ".join(f"--set {change}" for change, is_open in changes.items() if is_open)
    return (
        f"{recipe.name} takes {gib(estimate.needed)} of memory, and {estimate.device} has {gib(estimate.available)}: "
        f"try {open_to or 'a smaller backbone'}, or train on more ranks (DREAMGYM_NUM_RANKS)"
    )


def gib(num_bytes: int) -> str:
    """Return a size of memory as text."""
    return f"{num_bytes / 2**30:.2f} GiB"
