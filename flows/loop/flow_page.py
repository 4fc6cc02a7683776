"""Content of a flow run's Prefect page: messages, and the champion before and after the run."""

from prefect import get_run_logger
from prefect.artifacts import create_table_artifact
from prefect.exceptions import MissingContextError

from flows.loop.lineage import Lineage
from infra.context import ledger, run_context
from schemas.records import Reference

_NONE = "none"


def log_to_page() -> None:
    """Forward displayed messages to the flow run's logs; do nothing outside a flow run."""
    try:
        run_context().display.log = get_run_logger().info
    except MissingContextError:
        return


def show_champion(made: Lineage) -> None:
    """Publish a table of the champion before and after the run, each with its real success as measured by this run."""
    before, after = made.left_behind.champion, ledger().history().champion
    rows = [_row("before", before, made), _row("after", after, made)]
    create_table_artifact(
        key="champion", table=rows, description=f"Champion before and after run {run_context().run_id}"
    )


def _row(when: str, policy: Reference | None, made: Lineage) -> dict[str, str]:
    measured = (
        one["real_success"]
        for name, one in made.evaluations.items()
        if policy and name in made.artifacts and made.artifacts.policy(name).sha256 == policy.sha256
    )
    success = next(measured, None)
    return {
        "when": when,
        "champion": policy.sha256[:12] if policy else _NONE,
        "real success": "not measured" if success is None else f"{success:.1%}",
        "run": run_context().run_id,
    }
