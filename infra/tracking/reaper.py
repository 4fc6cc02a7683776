"""Cleanup after killed processes: their MLflow and Prefect runs are closed when the next run starts."""

from uuid import UUID

from mlflow import MlflowClient
from mlflow.entities import Run
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from infra.storage.blobs import Blobs
from infra.storage.lease import is_free, last_number

FLOW_RUN_TAG = "prefect_flow_run"
"""Tag of an MLflow run with the id of its Prefect flow run."""


def close_abandoned_runs(client: MlflowClient, experiment_id: str, blobs: Blobs, mine: str) -> None:
    """End the MLflow runs of every run without a live process: KILLED in MLflow, Crashed in Prefect.

    Args:
        client: MLflow client.
        experiment_id: Experiment of the MLflow runs.
        blobs: Store of the leases, which show whether a process works on a run.
        mine: Id of the run that starts now; its MLflow runs go on, but its earlier Prefect flow run is closed.
    """
    running = client.search_runs([experiment_id], "attributes.status = 'RUNNING'", max_results=1000)
    for run in running:
        run_id = run.data.tags.get("run_id", "")
        if run_id != mine and not _abandoned(blobs, run_id):
            continue
        _crash_flow_run(run)
        if run_id != mine:
            client.set_terminated(run.info.run_id, "KILLED")


def _abandoned(blobs: Blobs, run_id: str) -> bool:
    number = last_number(blobs, run_id)
    return number == 0 or is_free(blobs, run_id, number)


def _crash_flow_run(run: Run) -> None:
    if not (flow_run := run.data.tags.get(FLOW_RUN_TAG)):
        return
    with get_client(sync_client=True) as prefect:
        try:
            state = prefect.read_flow_run(UUID(flow_run)).state
        except ObjectNotFound:  # the flow run belongs to another Prefect server
            return
        if state and not state.is_final():
            prefect.set_flow_run_state(UUID(flow_run), Crashed(message="its process is gone"), force=True)
