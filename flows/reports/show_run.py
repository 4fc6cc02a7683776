"""Print the results of a run as a table, and its lineage."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from infra.progress.stage_labels import stage_label
from schemas.policies import POLICY_LABELS, REGISTERED_MODEL
from schemas.runs import BASELINES


def print_results(summary: dict[str, Any]) -> None:
    """Print results, verdict, cost, the path of the report and what to do next."""
    console = Console()
    results = summary["results"]
    if "start" in results:
        console.print(_table(results))
        console.print(_calibration_line(results))
    if unproven := summary.get("unproven"):
        _print_unproven(console, summary, unproven)
    _print_verdict(console, "gate", summary["gate"])
    if len(summary["gate"].get("families", ())) > 1:
        console.print(_family_table(summary["gate"]["families"]))
    _print_verdict(console, "sim-to-real beside dream training", summary.get("real_gate") or {})
    console.print(_cost_table(summary))
    if "dream" in summary["lineage"]:
        console.print(_policy_line(summary), soft_wrap=True)
    if summary.get("report"):
        console.print(f"report  {summary['report']}", soft_wrap=True)
    console.print(f"next    dreamgym trajectories --origin dream    or    dreamgym ui    (run {summary['run_id']})")


def _policy_line(summary: dict[str, Any]) -> str:
    """Return how to get the policy: as a folder, or from MLflow if it is registered."""
    exported = f"policy  dreamgym export {summary['run_id']} ./my-agent"
    version = summary["versions"].get("dream")
    return f"{exported}    or    models:/{REGISTERED_MODEL}/{version}" if version else exported


def _table(results: dict[str, Any]) -> Table:
    table = Table(title="Success on held-out tasks of the real environment; dreams beside it")
    for heading in ("policy", "real", "95% interval", "real RL steps", "dream"):
        table.add_column(heading, justify="left" if heading == "policy" else "right")
    for key, name in POLICY_LABELS.items():
        if key in results:
            one = results[key]
            low, high = one["interval"]
            table.add_row(
                name,
                f"{one['real_success']:.1%}",
                f"{low:.1%} to {high:.1%}",
                f"{one['real_interactions']:,}",
                f"{one['dream_success']:.1%}",
            )
    return table


def _print_unproven(console: Console, summary: dict[str, Any], verdict: dict[str, Any]) -> None:
    """Print what dreams of held-out logged tasks say, and why nothing is proven."""
    measured = summary["fidelity"]
    table = Table(title="Success in dreams of held-out logged tasks")
    for heading in ("policy", "dream", "95% interval", "tasks"):
        table.add_column(heading, justify="left" if heading == "policy" else "right")
    for name, one in summary["dreamt"].items():
        interval = f"{one['dream_success_low']:.1%} to {one['dream_success_high']:.1%}"
        table.add_row(POLICY_LABELS[name], f"{one['dream_success']:.1%}", interval, str(one["num_tasks"]))
    console.print(table)
    console.print(*on_logs_lines(measured), sep="\n", soft_wrap=True)
    console.print("verdict [red]not proven[/]", soft_wrap=True)
    for reason in verdict["reasons"]:
        console.print(f"        {reason}")


def on_logs_lines(measured: Mapping[str, float]) -> list[str]:
    """Return in sentences how an experience model predicts held-out logged episodes."""
    gains = [
        f"{measured[f'gain_over_{name}']:+z.2f} ({measured[f'gain_over_{name}_low']:+z.2f} to "
        f"{measured[f'gain_over_{name}_high']:+z.2f}) over {words}, {measured[f'{name}_f1']:.2f}"
        for name, words in BASELINES.items()
    ]
    return [
        f"next states: word F1 {measured['next_state_f1']:.2f} on {measured['num_transitions']:,.0f} held-out logged steps, "
        + ", ".join(gains),
        f"outcomes: {measured['outcome_agreement']:.1%} of {measured['num_replayed']:,.0f} held-out logged episodes end in the "
        f"dream as in the log (kappa {measured['outcome_kappa']:.2f}); {measured['num_broken']:,.0f} broke",
    ]


def _calibration_line(results: dict[str, Any]) -> str:
    return (
        f"dream against real after dream training: outcomes agree on {results['outcome_agreement']:.1%} of replayed dreams, "
        f"dream minus real success {results['dream_real_gap']:+z.1%}\n"
        f"other real steps: {results['offline_interactions']:,} in the logs, {results['calibration_interactions']:,} to "
        f"compare dream with real on valid tasks, {results['evaluation_interactions']:,} to evaluate"
    )


def _print_verdict(console: Console, name: str, gate: dict[str, Any]) -> None:
    """Print the verdict on a policy. Each policy is judged beside the one before it, on tasks of this judgement."""
    if not gate:
        return
    word = "[green]passed[/]" if gate["passed"] else "[red]refused[/]"
    console.print(f"{name:7} {word}: real gain {with_interval(gate['gain'])}", soft_wrap=True)
    for reason in gate["reasons"]:
        console.print(f"        {reason}")
    if judged_on := gate.get("judged_on"):
        console.print(f"        on {judged_on}")
    if unseen := gate.get("unseen_families"):
        console.print(f"        too few tasks to show a loss in {', '.join(unseen)}")
    if succession := gate["over_champion"]:
        word = "may succeed" if succession["passed"] else "may not succeed"
        console.print(f"        {word} champion {gate['champion'][:12]}: {with_interval(succession['gain'])}")
        for reason in succession["reasons"]:
            console.print(f"        {reason}")


def _family_table(families: dict[str, Any]) -> Table:
    table = Table(title="Real success by task family")
    for heading in ("family", "tasks", "start", "dream training", "gain"):
        table.add_column(heading, justify="left" if heading == "family" else "right")
    for family, one in families.items():
        table.add_row(
            family,
            str(one["num_tasks"]),
            f"{one['baseline']:.1%}",
            f"{one['candidate']:.1%}",
            with_interval(one["gain"]),
        )
    return table


def with_interval(gain: dict[str, float]) -> str:
    """Return a gain in real success with its 95% interval, as text."""
    return f"{gain['mean']:+z.1%} (95% {gain['low']:+z.1%} to {gain['high']:+z.1%})"


def _cost_table(summary: dict[str, Any]) -> Table:
    results = summary["results"]
    table = Table(
        title=f"Time and tokens ({results['seconds']:.0f} s in all, {results['overhead_share']:.1%} orchestration and storage)"
    )
    for heading in ("stage", "seconds", "tokens", "failed episodes", "limits met"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
    counted = summary["stage_tokens"], *(_sums(summary.get(name, {})) for name in ("stage_failures", "stage_limits"))
    seconds, limits = summary["stage_seconds"], counted[-1]
    for stage in dict.fromkeys((*seconds, *limits)):  # predictions are part of other stages
        counts = [f"{one[stage]:,}" if one.get(stage) else "" for one in counted]
        table.add_row(stage_label(stage), f"{seconds[stage]:.1f}" if stage in seconds else "", *counts)
    for model, cost in summary["endpoint_costs"].items():
        label = f"{model} at the endpoint: {cost['num_requests']:,} requests, {cost['num_cached']:,} cached answers"
        table.add_row(label, "", f"{cost['num_prompt_tokens'] + cost['num_completion_tokens']:,}")
    return table


def _sums(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of each stage's counts; records of older runs have none."""
    return {stage: sum(some.values()) for stage, some in counts.items()}


def print_lineage(summary: dict[str, Any]) -> None:
    """Print the digests of data, experience model, policies and gate report."""
    table = Table(title=f"Lineage of {summary['run_id']}")
    for heading in ("what", "sha256", "facts"):
        table.add_column(heading, overflow="fold")
    table.add_row("recipe", summary["recipe_digest"][:16], summary["recipe"]["name"])
    for name, value in summary["lineage"].items():
        for i, one in enumerate(value if isinstance(value, list) else [value]):
            reference = one["__reference__"]
            facts = ", ".join(f"{key} {note}" for key, note in reference["notes"].items())
            table.add_row(name if not isinstance(value, list) else f"{name} {i}", reference["sha256"][:16], facts)
    if summary["gate"]:
        table.add_row("gate", summary["gate"]["report"]["__reference__"]["sha256"][:16], "")
    for name, version in summary["versions"].items():
        table.add_row(f"{name} in the registry", f"version {version}", "")
    Console().print(table)
