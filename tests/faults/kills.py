"""kill -9 at random points of a cycle on the server stack, again and again; then it is run to its end."""

import os
import signal
import subprocess
from random import Random

from infra.stack.layout import Layout
from tests.command_line import COMMAND, environment
from tests.faults.calm import cycle, disturbed
from tests.faults.outcome import Outcome


def check(num_kills: int) -> Outcome:
    """As many kills as fit into cycles of other seeds, each run to its end and compared with an undisturbed one."""
    outcome = Outcome("kill -9 of a cycle on the server stack", "no row lost or twice, same data and weights")
    return disturbed(outcome, num_kills, 0, _kill_now_and_then)


def _kill_now_and_then(layout: Layout, seed: int, num_kills: int, rng: Random, outcome: Outcome) -> None:
    """Until the kills are used up, or the cycle was faster."""
    while outcome.num_tries < num_kills:
        process = subprocess.Popen(
            [COMMAND, *cycle(seed)],
            env=environment(layout.home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout=rng.uniform(5, 20))
            return
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            outcome.tried()
