"""What a recipe would do and what it would cost, before anything happens."""

from rich.console import Console
from rich.table import Table

from schemas.recipe import Recipe


def plan_of(recipe: Recipe) -> dict[str, int]:
    """Counts of what a cycle would do, from the recipe alone; episodes count at their longest."""
    environment, grpo = recipe.environment, recipe.grpo
    episodes_per_round = grpo.groups_per_round * grpo.group_size
    num_calibrations = 1 + -(-recipe.dream.num_rounds // recipe.dream.calibrate_every)
    return {
        "logged_episodes": environment.num_train_tasks * recipe.ingest.episodes_per_task,
        "own_episodes": recipe.experience.num_refit_episodes,
        "dream_rounds": recipe.dream.num_rounds,
        "dreamt_episodes": recipe.dream.num_rounds * episodes_per_round,
        "policy_updates": (recipe.dream.num_rounds + recipe.real.num_rounds) * grpo.updates_per_round,
        "real_training_episodes": recipe.real.num_rounds * episodes_per_round,
        "max_real_training_steps": recipe.real.num_rounds * episodes_per_round * environment.max_steps,
        "real_evaluation_episodes": 3 * environment.num_test_tasks
        + (num_calibrations + 1) * environment.num_valid_tasks,
        "max_steps_per_episode": environment.max_steps,
    }


def print_plan(recipe: Recipe, plan: dict[str, int]) -> None:
    """The resolved recipe, then the plan."""
    console = Console()
    console.print_json(data=recipe.model_dump(mode="json"))
    table = Table(title=f"{recipe.name}: nothing was started ({recipe.digest[:12]})")
    table.add_column("what")
    table.add_column("count", justify="right")
    for name, count in plan.items():
        table.add_row(name.replace("_", " "), f"{count:,}")
    console.print(table)
    console.print(f"next    dreamgym run {recipe.name}")
