"""Two cycles side by side."""

from typing import Any

from rich.console import Console
from rich.table import Table

from schemas.policies import POLICY_LABELS
from schemas.recipe import flat_fields


def comparison(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """What differs in the recipes, and the results of both."""
    flat_a, flat_b = flat_fields(a["recipe"]), flat_fields(b["recipe"])
    keys = sorted(flat_a.keys() | flat_b.keys())
    return {
        "cycles": [a["cycle_id"], b["cycle_id"]],
        "recipe_differences": {
            key: [flat_a.get(key), flat_b.get(key)] for key in keys if flat_a.get(key) != flat_b.get(key)
        },
        "results": [a["results"], b["results"]],
    }


def print_comparison(table: dict[str, Any]) -> None:
    """The same as two tables."""
    console = Console()
    a, b = table["cycles"]
    recipes = Table("field", a, b, title="Recipes: what differs")
    for key, (left, right) in table["recipe_differences"].items():
        recipes.add_row(key, str(left), str(right))
    results = Table("result", a, b, title="Results")
    for policy, label in POLICY_LABELS.items():
        cells = [_cell(result.get(policy)) for result in table["results"]]
        results.add_row(f"{label}: real success", *cells)
    for measure in ("outcome_agreement", "dream_real_gap", "seconds"):
        results.add_row(measure.replace("_", " "), *(_number(result.get(measure)) for result in table["results"]))
    console.print(recipes, results)


def _cell(policy: dict[str, Any] | None) -> str:
    if policy is None:
        return "not run"
    low, high = policy["interval"]
    return f"{policy['real_success']:.1%} ({low:.1%} to {high:.1%})"


def _number(value: float | None) -> str:
    return "not run" if value is None else f"{value:.3g}"
