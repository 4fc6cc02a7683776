"""kill -9 at random points of a run on the server stack, again and again; then it is run to its end."""

import os
import signal
import subprocess
from random import Random

from infra.stack.layout import Layout
from tests.faults.calm import begun, disturbed
from tests.faults.outcome import Outcome

_LONGEST_S = 25
"""Maximum seconds from when work begins to the kill: enough for the longest task on a busy machine, too."""


def check(num_kills: int) -> Outcome:
    """Kill runs of different seeds `num_kills` times; run each to its end and compare it with an undisturbed one."""
    outcome = Outcome("kill -9 of a cycle on the server stack", "no row lost or twice, same data and weights")
    return disturbed(outcome, num_kills, 0, _kill_now_and_then)


def _kill_now_and_then(layout: Layout, seed: int, num_kills: int, rng: Random, outcome: Outcome) -> None:
    """Start and kill the run until the kills are used up, or the run ends first."""
    while outcome.num_tries < num_kills:
        process = begun(layout, seed, subprocess.DEVNULL)
        try:
            process.wait(timeout=rng.uniform(0, _LONGEST_S))
            return
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            outcome.tried()
