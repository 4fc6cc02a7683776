"""What a recipe would do and what it would cost, before anything happens."""

from rich.console import Console
from rich.table import Table

from infra.cycles import summaries
from schemas.recipe import Recipe


def plan_of(recipe: Recipe) -> dict[str, int]:
    """Counts of what a cycle would do, from the recipe alone; episodes count at their longest."""
    environment, grpo = recipe.environment, recipe.grpo
    episodes_per_round = grpo.groups_per_round * grpo.group_size
    logged, own = environment.num_train_tasks * recipe.ingest.episodes_per_task, recipe.experience.num_refit_episodes
    num_calibrations = 1 + -(-recipe.dream.num_rounds // recipe.dream.calibrate_every)
    return {
        "logged_episodes": logged,
        "own_episodes": own,
        "dream_rounds": recipe.dream.num_rounds,
        "dreamt_episodes": recipe.dream.num_rounds * episodes_per_round,
        "policy_updates": (recipe.dream.num_rounds + recipe.real.num_rounds) * grpo.updates_per_round,
        "real_training_episodes": recipe.real.num_rounds * episodes_per_round,
        "max_real_training_steps": recipe.real.num_rounds * episodes_per_round * environment.max_steps,
        "real_evaluation_episodes": 3 * environment.num_test_tasks
        + (num_calibrations + 1) * environment.num_valid_tasks,
        "max_steps_per_episode": environment.max_steps,
        "max_teacher_requests": (logged + own) * (recipe.annotate.annotator == "teacher"),
    }


def seconds_last_time(recipe: Recipe) -> float | None:
    """What the latest cycle of a recipe of this name took in this home; None if there was none."""
    took = [one["results"]["seconds"] for one in summaries() if one["recipe"]["name"] == recipe.name]
    return took[-1] if took else None


def print_plan(recipe: Recipe, plan: dict[str, int], seconds: float | None) -> None:
    """The resolved recipe, the plan, and what it took last time."""
    console = Console()
    console.print_json(data=recipe.model_dump(mode="json"))
    table = Table(title=f"{recipe.name}: nothing was started ({recipe.digest[:12]})")
    table.add_column("what")
    table.add_column("count", justify="right")
    for name, count in plan.items():
        table.add_row(name.replace("_", " "), f"{count:,}")
    console.print(table)
    console.print(f"time    {seconds:.0f} s last time" if seconds else "time    not known: no cycle of it ran here yet")
    console.print(f"next    dreamgym run {recipe.name}")
