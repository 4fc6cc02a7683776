"""What a killed process could not say itself: its runs are closed truthfully when the next cycle starts."""

from uuid import UUID

from mlflow import MlflowClient
from mlflow.entities import Run
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from infra.storage.blobs import Blobs
from infra.storage.lease import is_free, last_number

FLOW_RUN_TAG = "prefect_flow_run"
"""On a run's run in MLflow: its flow run in Prefect."""


def close_abandoned_runs(client: MlflowClient, experiment_id: str, blobs: Blobs, mine: str) -> None:
    """End the MLflow runs of every run that nobody works on any more: KILLED in MLflow, Crashed in Prefect.

    Args:
        client: Of MLflow.
        experiment_id: Where they are.
        blobs: Where leases lie: they tell whether somebody works on a run.
        mine: The run that starts now; its runs in MLflow go on, its earlier flow run in Prefect does not.
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
        except ObjectNotFound:  # of another Prefect than today's
            return
        if state and not state.is_final():
            prefect.set_flow_run_state(UUID(flow_run), Crashed(message="its process is gone"), force=True)
