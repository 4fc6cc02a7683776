"""Three processes that begin in a fresh home, at random moments: each tracks a whole run there."""

import random
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from infra.settings import Settings
from infra.tracking.tracker import Tracker
from tests.faults.outcome import Outcome

_NUM_PROCESSES, _WITHIN_S = 3, 1.0


def check(num_tries: int) -> Outcome:
    """Begin this often, and find all three runs in the home each time."""
    outcome = Outcome("three processes begin in a fresh home", "each tracks its run, none fails")
    rng = random.Random(0)
    with ProcessPoolExecutor(_NUM_PROCESSES, get_context("spawn")) as processes:
        for _ in range(num_tries):
            with tempfile.TemporaryDirectory() as home:
                delays = [rng.uniform(0, _WITHIN_S) for _ in range(_NUM_PROCESSES)]
                begun = [processes.submit(_track, Path(home), f"run-{i}", delay) for i, delay in enumerate(delays)]
                failed = [f"after {delays}: {error}" for one in begun if (error := one.exception())]
                outcome.tried(*failed)
    return outcome


def _track(home: Path, name: str, delay_s: float) -> None:
    time.sleep(delay_s)
    tracker = Tracker(Settings(home=home), name, {})
    tracker.cycle().log_metrics({"success": 0.5})
    tracker.cycle().log_text("all is well", "report.txt")
    tracker.close("FINISHED")
