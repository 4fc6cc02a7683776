"""Cost of orchestration and tracking, as shares instead of rates."""

import json
import os
import subprocess
import tempfile

from tests.command_line import COMMAND


def slowdown_without_mlflow() -> float:
    """Return the time of a training step while MLflow is away over that while it is there."""
    from tests.benchmarks.tracking_away import slowdown

    return slowdown()


def of_a_cycle() -> float:
    """Return the share of a default run's wall time that is orchestration, tracking and storage."""
    with tempfile.TemporaryDirectory() as home:
        command = [COMMAND, "run", "textworld-tiny", "--json"]
        done = subprocess.run(
            command, check=True, env={**os.environ, "DREAMGYM_HOME": home}, capture_output=True, text=True
        )
        return json.loads(done.stdout)["results"]["overhead_share"]
