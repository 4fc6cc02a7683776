"""Interrupts are never lost."""

import subprocess
import sys

LOST_AND_FOUND = """
import signal
from infra.running.interrupts import handle_interrupts, stop_if_requested

class Doomed:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

handle_interrupts()
stop_if_requested()
Doomed()
print("went on")
try:
    stop_if_requested()
except KeyboardInterrupt:
    print("stopped")
"""


def test_an_interrupt_that_a_destructor_swallowed_is_raised_again():
    done = subprocess.run([sys.executable, "-c", LOST_AND_FOUND], capture_output=True, text=True, check=True)
    assert "Exception ignored" in done.stderr
    assert done.stdout.split("\n")[:2] == ["went on", "stopped"]
