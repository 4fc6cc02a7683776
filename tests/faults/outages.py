"""Outage of a server in the middle of a run: the run goes on, or says what is missing and is resumed."""

import subprocess
import sys
import tempfile
import time
from random import Random

from infra.stack.layout import Layout
from infra.stack.up import up
from tests.faults.calm import begun, disturbed
from tests.faults.outcome import Outcome

_AWAY_S = {"prefect": 15, "postgres": 15, "s3": 60, "mlflow": 120}
"""Seconds that each server of the stack is away."""
_FEW, _BRIEFLY_S = 5, 10
"""Number of outages up to which each is brief, and the seconds that a brief one lasts at most."""


def check(num_outages: int) -> Outcome:
    """Cause `num_outages` outages, of one server after the other, in runs of different seeds."""
    outcome = Outcome(
        "Prefect, PostgreSQL, S3 or MLflow goes away in a cycle",
        "it ends, or fails cleanly and is resumed: no row lost or twice, same data and weights",
    )
    return disturbed(outcome, num_outages, 100, _disturb)


def _disturb(layout: Layout, seed: int, num_outages: int, rng: Random, outcome: Outcome) -> None:
    """Run a recipe, again if it fails, with a server away now and then.

    Return once the outages are used up, or the run has ended.
    """
    longest_s = _BRIEFLY_S if num_outages <= _FEW else max(_AWAY_S.values())
    while outcome.num_tries < num_outages:
        with tempfile.TemporaryFile("w+") as told:
            process = begun(layout, seed, told)
            while process.poll() is None and outcome.num_tries < num_outages:
                _wait(process, rng.uniform(3, 8))
                if process.poll() is None:
                    server = list(_AWAY_S)[outcome.num_tries % len(_AWAY_S)]
                    _take_away(layout, server, min(_AWAY_S[server], longest_s))
                    outcome.tried()
            process.wait(timeout=1800)
            told.seek(0)
            if process.returncode == 0:
                return
            outcome.broken += _untidy(told.read(), process.returncode)


def _take_away(layout: Layout, server: str, seconds: float) -> None:
    """Stop a server for some seconds, and wait until it is healthy again."""
    configuration = str(layout.folder / "supervisor.conf")
    command = [sys.executable, "-m", "supervisor.supervisorctl", "-c", configuration, "stop", server]
    subprocess.run(command, capture_output=True, check=True)
    time.sleep(seconds)
    up(layout, lambda line: None)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return


def _untidy(told: str, code: int) -> list[str]:
    """Return a problem if a failed run did not give its reason in one line."""
    last = told.strip().splitlines()[-1] if told.strip() else ""
    if code == 1 and last.startswith("error: ") and "Traceback" not in told:
        return []
    return [f"exit {code}: {told[-600:]}"]
