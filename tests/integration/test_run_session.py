"""A run's MLflow runs end with its true status, wherever it is interrupted."""

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread

import pytest
from rich.console import Console
from sqlalchemy import Engine, event

from flows.run_session import run_session
from infra.progress.progress import Display
from infra.running.interrupts import handle_interrupts, restored_interrupts
from infra.settings import settings
from infra.tracking.tracker import Tracker
from schemas.recipes.recipe import Recipe

pytestmark = pytest.mark.integration


def statuses(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "mlflow.db")) as database, suppress(sqlite3.OperationalError):
        return [status for (status,) in database.execute("select status from runs")]
    return []


@contextmanager
def interrupted_after(statement: str) -> Iterator[None]:
    """Send Ctrl-C once, right after MLflow has executed a statement of this kind."""
    sent: list[int] = []

    def interrupt(_connection, _cursor, executed: str, *_: object) -> None:
        if executed.startswith(statement) and current_thread() is main_thread() and not sent:
            sent.append(1)
            os.kill(os.getpid(), signal.SIGINT)

    event.listen(Engine, "after_cursor_execute", interrupt)
    try:
        with restored_interrupts():
            handle_interrupts()
            yield
    finally:
        event.remove(Engine, "after_cursor_execute", interrupt)
    assert sent


@pytest.mark.parametrize(
    ("statement", "ends"),
    [("INSERT INTO runs", "KILLED"), ("SELECT DISTINCT runs", "KILLED"), ("UPDATE runs", "FINISHED")],
)
def test_an_interrupt_while_mlflow_is_called_leaves_no_run_running(home, statement, ends):
    session = run_session(Recipe(name="r"), "r-1", Display(Console(quiet=True)))
    with interrupted_after(statement), pytest.raises(KeyboardInterrupt), session:
        pass
    assert statuses(home) == [ends]


@pytest.mark.parametrize(("interrupted", "ends"), [(True, "KILLED"), (False, "FAILED")])
def test_an_interrupt_that_a_library_turns_into_an_error_is_one_all_the_same(home, interrupted, ends):
    def library() -> None:
        with suppress(KeyboardInterrupt):
            if interrupted:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
        raise ConnectionError("the connection was lost")

    session = run_session(Recipe(name="r"), "r-1", Display(Console(quiet=True)))
    with restored_interrupts():
        handle_interrupts()
        with pytest.raises(KeyboardInterrupt if interrupted else ConnectionError), session:
            library()
    assert statuses(home) == [ends]


def test_a_killed_run_is_closed_though_entries_wait(home):
    tracker = Tracker(settings(), "r-1", {})
    tracker.cycle().log_rollouts(lambda: time.sleep(7) or [])
    tracker.stage("dream").log_metrics({"loss": 1.0})
    tracker.close("KILLED")
    assert statuses(home) == ["KILLED"]
    time.sleep(3)
    assert statuses(home) == ["KILLED"], "what waited does not open a run anew"
    again = Tracker(settings(), "r-1", {})
    again.stage("dream").log_metrics({"loss": 2.0}, step=1)
    again.close("FINISHED")
    history = again.client.get_metric_history(again.stage("dream")._run_id(), "loss")
    assert [(one.step, one.value) for one in history] == [(0, 1.0), (1, 2.0)], "the journal had it"
