"""Session of a run: an exclusive lease, open stores and trackers, and a final status in MLflow."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from prefect import Flow, State
from prefect.client.schemas import FlowRun

from infra.context import RunContext, background_blobs, blobs, objects, run_context, set_run_context
from infra.orchestration.prefect_server import await_prefect
from infra.progress.progress import Display
from infra.progress.stage_labels import STAGE_LABELS
from infra.running.interrupts import deferred_interrupts, ends_by_interrupt
from infra.running.reachable import prefect_is_away
from infra.settings import settings
from infra.storage.blobs import require_conditional_puts
from infra.storage.lease import Lease
from infra.tracking.code_tags import code_tags
from infra.tracking.reaper import FLOW_RUN_TAG, close_abandoned_runs
from infra.tracking.tracker import Tracker, mlflow_is_away
from schemas.errors import StorageError
from schemas.recipes.recipe import Recipe
from tasks.running.device import device_name


@contextmanager
def run_session(recipe: Recipe, run_id: str, display: Display, *, reopen: bool = True) -> Iterator[Tracker]:
    """Hold a run's lease, open its tracker, context and stores, and always close its MLflow runs with the true status.

    Args:
        recipe: Recipe of the run.
        run_id: Id of the run.
        display: Shows progress.
        reopen: Continue its MLflow runs that have ended; else they keep their status and end time.

    Raises:
        StorageError: Prefect or MLflow was unreachable for longer than its client retries, or an object was not stored.
    """
    require_conditional_puts(blobs())
    with (
        Lease(blobs(), run_id, display.say),
        _outages_explained(),
        _tracked(recipe, run_id, display, reopen) as tracker,
        background_blobs(),
    ):
        await_prefect()
        with deferred_interrupts():
            close_abandoned_runs(tracker.client, tracker.experiment_id, blobs(), run_id)
        yield tracker


@contextmanager
def _tracked(recipe: Recipe, run_id: str, display: Display, reopen: bool) -> Iterator[Tracker]:
    """Open the run's tracker and context; close its MLflow runs with the status that the work ends with."""
    tracker = None
    try:
        with deferred_interrupts():
            tracker = _open_context(recipe, run_id, display, reopen)
        yield tracker
    except BaseException as error:
        with suppress(Exception):  # the original error matters more than one of MLflow
            if tracker:
                tracker.close("KILLED" if ends_by_interrupt(error) else "FAILED")
        raise
    tracker.close("FINISHED")
    if refused := tracker.refusals:
        display.say(f"MLflow refused {len(refused)} entries, which are in the journal; the first: {refused[0]}")


@contextmanager
def _outages_explained() -> Iterator[None]:
    """Convert errors of clients whose server is unreachable to a StorageError that says what to do."""
    try:
        yield
    except Exception as error:
        server = "MLflow" if mlflow_is_away(error) else "Prefect" if prefect_is_away(error) else ""
        if not server:
            raise
        raise StorageError(f"{server} is unreachable: {error}. Run the same command again once it answers") from error


def _open_context(recipe: Recipe, run_id: str, display: Display, reopen: bool) -> Tracker:
    """Open the run's tracker and context, and return the tracker."""
    tags = {"recipe": recipe.name, "recipe_digest": recipe.digest, "seed": str(recipe.seed), "device": device_name()}
    display.time.keep_in(settings().home / "journal" / run_id / "time.json")
    tracker = Tracker(settings(), run_id, tags | code_tags(), reopen=reopen)
    display.labels = STAGE_LABELS
    objects().begin_run()
    set_run_context(RunContext(run_id, recipe.digest, tracker, display))
    return tracker


def note_flow_run(flow: Flow, flow_run: FlowRun, state: State) -> None:
    """Tag the run's MLflow run with the id of its Prefect flow run."""
    run_context().tracker.cycle().set_tags({FLOW_RUN_TAG: str(flow_run.id)})
