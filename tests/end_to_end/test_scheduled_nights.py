"""Nights on the server stack: a worker runs them on an interval schedule, each with more logs, one with nothing new."""

import json
from collections.abc import Iterator

import pytest

from infra.stack.layout import Layout
from tests.command_line import LENIENT_GATE, SMALLER, TOY, changed, dreamgym, dreamgym_here
from tests.integration.stack_home import ask_prefect, running_stack
from tests.logged import logged_rows, write_log
from tests.patient import until

pytestmark = [pytest.mark.e2e, pytest.mark.integration]

EVERY_S = 20
PATIENCE_S = 600
ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


@pytest.fixture(scope="module")
def deployed() -> Iterator[Layout]:
    with running_stack() as layout:
        write_log(layout.home / "logs" / "monday.jsonl", logged_rows(3))
        small = changed(*TOY, *SMALLER, *LENIENT_GATE, "ingest.from_store=true", f"ingest.path={layout.home / 'logs'}")
        done = dreamgym(layout.home, "deploy", "textworld-tiny", *small)
        assert done.returncode == 0, done.stderr
        yield layout


def schedule(layout: Layout, *, active: bool) -> None:
    """Let the nightly deployment run every few seconds, or not at all."""
    deployment = ask_prefect(layout, "GET", "deployments/name/retrain/nightly")["id"]
    for one in ask_prefect(layout, "GET", f"deployments/{deployment}/schedules"):
        ask_prefect(layout, "DELETE", f"deployments/{deployment}/schedules/{one['id']}")
    if active:
        every = {"schedule": {"interval": EVERY_S, "timezone": "UTC"}, "active": True}
        ask_prefect(layout, "POST", f"deployments/{deployment}/schedules", [every])


def ended(layout: Layout) -> list[dict]:
    """Return the flow runs of the nightly deployment that started and have ended, oldest first."""
    runs = ask_prefect(
        layout, "POST", "flow_runs/filter", deployments={"name": {"any_": ["nightly"]}}, sort="START_TIME_ASC"
    )
    return [one for one in runs if one["state_type"] in ENDED and one["start_time"]]


def completed(layout: Layout) -> list[dict]:
    return [one for one in ended(layout) if one["state_type"] == "COMPLETED"]


def retrained(layout: Layout) -> set[str]:
    """Return the names of completed flow runs that began or found a run."""
    return {one["name"] for one in completed(layout) if one["name"].startswith("retrain ")}


def listed(layout: Layout) -> list[dict]:
    return json.loads(dreamgym_here(layout.home, "runs", "--json").stdout)


def test_two_scheduled_nights_and_one_without_anything_new(deployed):
    def wait(condition) -> None:
        until(condition, PATIENCE_S, lambda: [(one["name"], one["state_name"]) for one in ended(deployed)])

    schedule(deployed, active=True)
    wait(lambda: len(retrained(deployed)) == 1)
    write_log(deployed.home / "logs" / "tuesday.jsonl", logged_rows(2, 2))
    wait(lambda: len(retrained(deployed)) == 2)
    wait(lambda: len(completed(deployed)) > 2)  # one had nothing new
    schedule(deployed, active=False)
    first, second = listed(deployed)  # the run with nothing new left no entry
    assert first["status"] == second["status"] == "finished"
    assert first["trigger"] == second["trigger"] == "schedule"
    assert second["reasons"] == ["new: logs/tuesday.jsonl"]
    runs = ended(deployed)
    assert {one["state_type"] for one in runs} <= {"COMPLETED", "CANCELLED"}, (
        "a night that is still running is not begun again"
    )
    assert retrained(deployed) == {f"retrain {one['run_id']}" for one in (first, second)}
    assert any(second["run_id"] in line for line in logs_of(deployed)), "the page of the flow run tells it"
    tables = ask_prefect(deployed, "POST", "artifacts/filter", artifacts={"key": {"any_": ["champion"]}})
    rows = [row for table in tables for row in json.loads(table["data"])]
    assert {row["run"] for row in rows} == {first["run_id"], second["run_id"]}
    assert {row["when"] for row in rows} == {"before", "after"}


def logs_of(layout: Layout) -> list[str]:
    return [line["message"] for line in ask_prefect(layout, "POST", "logs/filter", limit=200)]
