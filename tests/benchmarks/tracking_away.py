"""Slowdown of a training step while MLflow is away."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from infra.settings import Settings
from infra.tracking.tracker import Tracker
from tests.benchmarks.update import our_update
from tests.free_ports import free_port
from tests.integration.tracking_server import mlflow_server

_NUM_OUTAGES = 3
_OUTAGE_S = 40


def slowdown() -> float:
    """Return the median step time while MLflow is away over that while it is there; by turns, two minutes of each."""
    step, port = our_update(), free_port()
    there, away = [], []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        with mlflow_server(Path(home), port):
            tracker = Tracker(Settings(home=Path(home), tracking_uri=f"http://127.0.0.1:{port}"), "cycle", {})
            logged = _logged(step, tracker)
            logged()
        for _ in range(_NUM_OUTAGES):
            away += _seconds(logged)
            with mlflow_server(Path(home), port):
                tracker.flush()
                there += _seconds(logged)
        with mlflow_server(Path(home), port):
            tracker.flush()
    return statistics.median(away) / statistics.median(there)


def _logged(step: Callable[[], object], tracker: Tracker) -> Callable[[], None]:
    """Return a step that logs what it measured."""
    number = 0

    def work() -> None:
        nonlocal number
        step()
        number += 1
        tracker.stage("training").log_metrics({f"measure {i}": float(number) for i in range(8)}, number)

    return work


def _seconds(work: Callable[[], None]) -> list[float]:
    """Return the seconds of each call, called repeatedly for the length of an outage."""
    took, until = [], time.monotonic() + _OUTAGE_S
    while time.monotonic() < until:
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return took
