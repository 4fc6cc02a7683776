"""Run a recipe in this process, and record the results."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from flows.loop.cycle import cycle
from flows.loop.fine_tune import real_only, sim_to_real
from flows.loop.lineage import Lineage, numbers_in
from flows.planning.check_services import on_this_machine, require_services
from flows.planning.require_methods import require_methods
from flows.promotion.promote_run import announce_promotion
from flows.run_session import note_flow_run, run_session
from flows.running.begin_run import Begun, begin_run, has_reached
from flows.running.results import (
    REAL_TRAINING,
    datasets,
    gain_metrics,
    headline,
    lineage_tags,
    policy_results,
    results_of,
    training_seconds,
)
from flows.running.run_flow import run_flow
from flows.running.run_note import note_of
from flows.stage import Stage
from infra.context import ledger, objects, replay_store, run_context
from infra.progress.progress import Display
from infra.running.interrupts import ends_by_interrupt
from infra.storage.run_records import record_of, save_record, save_steps, steps_of
from infra.tracking.code_tags import git_commit
from infra.tracking.costs import CostTracker
from infra.tracking.tracker import Tracker
from schemas.errors import InputError
from schemas.plain import plain, restored
from schemas.recipes.recipe import Recipe, flat_fields, stored_recipe
from schemas.records import Reference
from schemas.runs import LeftBehind, Record, Status, Trigger
from tasks.judging.report import write_report
from tasks.running.device import device_name


def run_recipe(
    recipe: Recipe, until: Stage, display: Display, trigger: Trigger = Trigger.HAND, *, again: bool = False
) -> Record:
    """Run a recipe up to a stage if there is a reason to, and return the run's record.

    Args:
        recipe: Recipe to run.
        until: Last stage to run.
        display: Shows progress.
        trigger: Cause that starts the run.
        again: Run the next seed without another reason.
    """
    recipe = on_this_machine(recipe)
    require_methods(recipe)
    require_services(recipe)
    return work_on(begin_run(recipe, until, trigger, display.say, again=again), until, display)


def work_on(begun: Begun, until: Stage, display: Display) -> Record:
    """Execute the remaining steps of a run and return its record; do nothing if nothing is new."""
    run_id = begun.record["run_id"]
    if begun.nothing_new:
        return begun.left_as_it_is(display.say)
    with run_session(begun.recipe, run_id, display) as tracker, _ending_explained(run_id):
        record = record_of(run_id)  # another process may have changed it while this one waited
        if has_reached(record, until):
            display.say(f"run {run_id} was finished by another process in the meantime")
            return record
        furthest = max(Stage(record["until"]), until, key=lambda stage: stage.place)
        record = {**record, "status": Status.RUNNING.value, "until": furthest.value}
        save_record(record)
        keep_steps(run_id)
        record = _with_store_pinned(begun.recipe, record)
        flow = cycle.with_options(flow_run_name=run_id, on_running=[note_flow_run])
        made = run_flow(flow, begun.recipe, until, LeftBehind.model_validate(record["left_behind"]))
        return _written_down(begun.recipe, {**record, "reached": until.value}, made, tracker, display)


def keep_steps(run_id: str) -> None:
    """Store the steps of the present run as they finish, so that a killed run has them, too."""
    run_context().steps.on_change = lambda: save_steps(run_id, run_context().steps.plain())


def fine_tune_run(record: Record, policy: str, display: Display) -> Record:
    """Continue training exactly the promoted policy of a finished run in the real environment; return the new record.

    Args:
        record: Record of the run.
        policy: Digest of the promoted policy; empty: today's champion must be the run's.
        display: Shows progress.

    Raises:
        InputError: the run has no policy yet.
        IntegrityError: the run's policy is not the promoted one.
    """
    run_id, made_of = record["run_id"], restored(record.get("lineage", {}))
    if "dream" not in made_of:
        raise InputError(f"run {run_id} has no policy yet: dreamgym run it to the end first")
    if "sim_to_real" in made_of:
        display.say(f"run {run_id} has gone on in the real environment already")
        return record
    champion = ledger().history().champion
    policy = policy or (champion.sha256 if champion else "")
    recipe = stored_recipe(record["recipe"])
    with run_session(recipe, run_id, display) as tracker, _ending_explained(run_id):
        record = {**record_of(run_id), "until": Stage.REAL.value, "reached": Stage.REAL.value}
        run_context().steps.go_on_from(steps_of(run_id))
        flow = sim_to_real.with_options(flow_run_name=run_id, on_running=[note_flow_run])
        return _written_down(recipe, record, run_flow(flow, recipe, made_of, policy), tracker, display)


def _with_store_pinned(recipe: Recipe, record: Record) -> Record:
    """Return the record with the version of the transitions that the run reads, pinned once and for good."""
    left_behind = record["left_behind"]
    if not recipe.ingest.from_store or left_behind["table_tag"] or not replay_store().holds("transitions"):
        return record
    tag = f"{record['run_id']}-read"
    replay_store().pin("transitions", tag)
    record = {**record, "left_behind": {**left_behind, "table_tag": tag}}
    save_record(record)
    return record


@contextmanager
def _ending_explained(run_id: str) -> Iterator[None]:
    """Record the status and the error of a run that did not finish."""
    try:
        yield
    except BaseException as error:
        status = Status.KILLED if ends_by_interrupt(error) else Status.FAILED
        save_record({**record_of(run_id), "status": status.value, "error": str(error)[:500]})
        if len(run_context().steps.steps) > len(steps_of(run_id)["steps"]):
            save_steps(run_id, run_context().steps.plain())
        raise


def _written_down(recipe: Recipe, record: Record, made: Lineage, tracker: Tracker, display: Display) -> Record:
    """Store the run's results in its record, in MLflow and in a report; return the record."""
    run_id = record["run_id"]
    tracker.cycle().log_params(flat_fields(recipe.model_dump(mode="json")))
    record = {**record, **_ending(made, display.time)}
    tracker.cycle().log_summary(headline(record["results"]) | gain_metrics(record["gate"]))
    tracker.cycle().set_tags(lineage_tags(made))
    tracker.cycle().log_datasets(datasets(made))
    record["report"] = str(write_report(recipe, record, made))
    tracker.cycle().set_tags({"mlflow.note.content": note_of(record)})
    save_steps(run_id, run_context().steps.plain())
    save_record(record)
    if taken_over := run_context().steps.taken_over():
        display.say(taken_over)
    if made.promoted == "dream":
        announce_promotion(run_id, made.artifacts.dream.sha256)
    return record


def run_real_only(recipe: Recipe, record: Record, display: Display) -> dict[str, Any]:
    """Run the real-only baseline of a finished run; return its success and cost."""
    run_id = f"{record['run_id']}-real-only"
    with run_session(recipe, run_id, display):
        flow = real_only.with_options(flow_run_name=run_id, on_running=[note_flow_run])
        evaluation = run_flow(flow, recipe, restored(record["lineage"]))
        seconds = training_seconds(display.time.stage_seconds, REAL_TRAINING)
    return policy_results(evaluation, evaluation["real_interactions"]) | {"training_seconds": seconds}


def _ending(made: Lineage, time: CostTracker) -> dict[str, Any]:
    """Return the fields of a finished run's record that `show` and `compare` read."""
    return {
        "status": Status.FINISHED.value,
        "finished_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "results": results_of(made, time),
        "stage_seconds": time.stage_seconds,
        "stage_tokens": time.stage_tokens,
        "stage_failures": time.stage_failures,
        "stage_limits": time.stage_limits,
        "endpoint_costs": time.endpoint_costs,
        "lineage": plain(made.artifacts.plain() | _kept(made)),
        "gate": plain(made.gate or {}),
        "real_gate": plain(made.real_gate or {}),
        "unproven": plain(made.unproven or {}),
        "dreamt": {name: numbers_in(one) for name, one in made.dreamt.items()},
        "promoted": made.promoted,
        "fidelity": made.fidelity,
        "memorisation": made.memorisation,
        "versions": made.versions,
        "commit": git_commit(),
        "device": device_name(),
    }


def _kept(made: Lineage) -> dict[str, Reference]:
    """Store measurements, to continue the run later, and real success by task, to compare runs on the same tasks."""
    successes = {name: evaluation["successes"] for name, evaluation in made.evaluations.items()}
    return {
        "measured": objects().put_json(plain(made.measured), "measured"),
        **({"successes": objects().put_json(successes, "successes")} if successes else {}),
    }
