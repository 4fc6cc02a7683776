"""An interrupt is never lost, and children that are told to be deaf do not hear it."""

import signal
import subprocess
import sys

from infra.interrupts import children_deaf_to_interrupts

LOST_AND_FOUND = """
import signal
from infra.interrupts import heed_interrupts, stop_if_interrupted

class Doomed:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

heed_interrupts()
stop_if_interrupted()
Doomed()
print("went on")
try:
    stop_if_interrupted()
except KeyboardInterrupt:
    print("stopped")
"""


def test_an_interrupt_that_a_destructor_swallowed_is_raised_again():
    done = subprocess.run([sys.executable, "-c", LOST_AND_FOUND], capture_output=True, text=True, check=True)
    assert "Exception ignored" in done.stderr
    assert done.stdout.split("\n")[:2] == ["went on", "stopped"]


def test_deaf_children_outlive_an_interrupt_and_others_do_not():
    sleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
    with children_deaf_to_interrupts():
        deaf = subprocess.Popen(sleep, stdout=subprocess.PIPE)
    hearing = subprocess.Popen(sleep, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for child in (deaf, hearing):
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
    assert hearing.wait(timeout=10) != 0
    assert deaf.poll() is None
    deaf.terminate()
    assert deaf.wait(timeout=10) == -signal.SIGTERM
