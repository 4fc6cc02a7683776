"""Run a recipe in this process, and write down what came of it."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.at_work import at_work, note_flow_run
from flows.before_running import require_servers
from flows.cycle import Lineage, cycle, real_only
from flows.results import (
    REAL_TRAINING,
    datasets,
    headline,
    lineage_tags,
    policy_results,
    results_of,
    training_seconds,
)
from flows.stage import Stage
from infra.announcements import POLICY_PROMOTED, announce
from infra.cycles import save_summary, summary_of
from infra.doors import objects
from infra.progress import Display
from infra.timesheet import Timesheet
from schemas.plain import plain, restored
from schemas.recipe import Recipe, digest_of, flat_fields
from schemas.records import Reference
from tasks.report import write_report
from tasks.versioned import code_digest


def cycle_id_of(recipe: Recipe) -> str:
    """The same recipe and code are the same cycle, which a second run resumes."""
    flow = hashlib.sha256(Path(__file__).with_name("cycle.py").read_bytes()).hexdigest()
    return f"{recipe.name}-{recipe.digest[:6]}{digest_of([code_digest(), flow])[:4]}"


def run_recipe(recipe: Recipe, until: Stage, display: Display) -> dict[str, Any]:
    """Run a cycle to the end of a stage and return its summary, which is also kept in home."""
    require_servers(recipe)
    cycle_id = cycle_id_of(recipe)
    with at_work(recipe, cycle_id, display) as tracker:
        tracker.cycle().log_params(flat_fields(recipe.model_dump(mode="json")))
        if tracker.resumed:
            display.say(f"cycle {cycle_id} was begun before: going on from its last finished step")
        made = cycle.with_options(flow_run_name=cycle_id, on_running=[note_flow_run])(recipe, until)
        summary = _summary(recipe, cycle_id, made, display.time)
        tracker.cycle().log_summary(headline(summary["results"]))
        tracker.cycle().set_tags(lineage_tags(made))
        tracker.cycle().log_datasets(datasets(made))
        if not _went_further(summary_of(cycle_id), summary):
            summary["report"] = str(write_report(recipe, summary, made))
            save_summary(summary)
        if made.promoted:
            announce_promotion(summary)
    return summary


def _went_further(earlier: dict[str, Any] | None, now: dict[str, Any]) -> bool:
    """Whether the same cycle was once run to a later stage: what is kept of it then stays."""
    stages = ("experience_model", "dream", "sim_to_real")
    return bool(earlier) and any(stage in earlier["lineage"] and stage not in now["lineage"] for stage in stages)


def announce_promotion(summary: dict[str, Any]) -> None:
    """Tell whoever fine-tunes promoted policies for real."""
    policy = restored(summary["lineage"]["dream"]).sha256
    announce(POLICY_PROMOTED, policy, {"cycle_id": summary["cycle_id"], "policy": policy})


def run_real_only(recipe: Recipe, summary: dict[str, Any], display: Display) -> dict[str, Any]:
    """The real-only baseline beside a cycle that ran before: its success and what it cost."""
    cycle_id = f"{summary['cycle_id']}-real-only"
    with at_work(recipe, cycle_id, display):
        flow = real_only.with_options(flow_run_name=cycle_id, on_running=[note_flow_run])
        evaluation = flow(recipe, restored(summary["lineage"]))
        seconds = training_seconds(display.time.stage_seconds, REAL_TRAINING)
    return policy_results(evaluation, evaluation["real_interactions"]) | {"training_seconds": seconds}


def _summary(recipe: Recipe, cycle_id: str, made: Lineage, time: Timesheet) -> dict[str, Any]:
    """What `show` and `compare` read."""
    return {
        "cycle_id": cycle_id,
        "finished_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "recipe": recipe.model_dump(mode="json"),
        "recipe_digest": recipe.digest,
        "results": results_of(made, time),
        "stage_seconds": time.stage_seconds,
        "stage_tokens": time.stage_tokens,
        "stage_failures": time.stage_failures,
        "endpoint_costs": time.endpoint_costs,
        "lineage": plain(made.references | _successes(made)),
        "gate": plain(made.gate),
        "fidelity": made.fidelity,
        "versions": made.versions,
    }


def _successes(made: Lineage) -> dict[str, Reference]:
    """Real success by task of each policy, kept to compare cycles on the same tasks."""
    if not made.evaluations:
        return {}
    by_policy = {name: evaluation["successes"] for name, evaluation in made.evaluations.items()}
    return {"successes": objects().put_json(by_policy, "successes")}
