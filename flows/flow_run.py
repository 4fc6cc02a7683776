"""The Prefect flow run that this process works on, as its server knows it."""

from typing import Any

from prefect.client.orchestration import get_client
from prefect.runtime import flow_run


def present_flow_run() -> Any | None:
    """Return the flow run that calls this; None outside one."""
    if not flow_run.id:
        return None
    with get_client(sync_client=True) as client:
        return client.read_flow_run(flow_run.id)


def rename_flow_run(suffix: str) -> None:
    """Rename the flow run to its flow's name and a suffix; do nothing outside one."""
    if flow_run.id:
        with get_client(sync_client=True) as client:
            client.update_flow_run(flow_run.id, name=f"{flow_run.flow_name} {suffix}")
