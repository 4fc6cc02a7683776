"""Interrupts are never lost."""

import signal
import subprocess
import sys

import pytest

from infra.running.interrupts import handle_interrupts, request_stop, restored_interrupts, stop_if_requested

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


@restored_interrupts()
def stopped_twice() -> None:
    handle_interrupts()
    request_stop("the lease is gone")
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_of_one_work_does_not_stop_the_next():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        stopped_twice()
    assert signal.getsignal(signal.SIGINT) is before
    stop_if_requested()
