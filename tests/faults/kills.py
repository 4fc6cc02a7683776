"""kill -9 at random points of a cycle on the server stack, again and again; then it is run to its end."""

import os
import signal
import subprocess
from random import Random

from infra.stack.layout import Layout
from tests.faults.calm import begun, disturbed
from tests.faults.outcome import Outcome

_LONGEST_S = 25
"""From when work begins to the kill: long enough that the longest task gets done on a busy machine, too."""


def check(num_kills: int) -> Outcome:
    """As many kills as fit into cycles of other seeds, each run to its end and compared with an undisturbed one."""
    outcome = Outcome("kill -9 of a cycle on the server stack", "no row lost or twice, same data and weights")
    return disturbed(outcome, num_kills, 0, _kill_now_and_then)


def _kill_now_and_then(layout: Layout, seed: int, num_kills: int, rng: Random, outcome: Outcome) -> None:
    """Until the kills are used up, or the cycle was faster."""
    while outcome.num_tries < num_kills:
        process = begun(layout, seed, subprocess.DEVNULL)
        try:
            process.wait(timeout=rng.uniform(0, _LONGEST_S))
            return
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            outcome.tried()
