"""Print the evaluation of a model as tables."""

from typing import Any

from rich.console import Console
from rich.table import Table

from flows.reports.show_run import with_interval
from schemas.policies import POLICY_LABELS


def print_evaluation(found: dict[str, Any]) -> None:
    """Print success for real, in the dream if it dreamt, by family, and over the policies of a run."""
    console = Console()
    low, high = found["interval_low"], found["interval_high"]
    console.print(
        f"{found['model']} wins {found['real_success']:.1%} of {found['num_tasks']} real test tasks, 95% {low:.1%} to {high:.1%}"
    )
    if "dream_success" in found:
        agreement = found["outcome_agreement"]
        console.print(
            f"in the dream {found['dream_success']:.1%}; {agreement:.1%} of dreamt outcomes hold when they are replayed"
        )
    if len(found["families"]) > 1:
        console.print(_families(found["families"]))
    for name, gain in found["gains"].items():
        console.print(f"over the policy {POLICY_LABELS[name]}: {with_interval(gain)}")


def _families(families: dict[str, Any]) -> Table:
    table = Table(title="Real success by task family")
    for heading in ("family", "tasks", "real"):
        table.add_column(heading, justify="left" if heading == "family" else "right")
    for name, one in families.items():
        table.add_row(name, str(one["num_tasks"]), f"{one['real_success']:.1%}")
    return table
