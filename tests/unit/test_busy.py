"""Wait policy of threads: asleep where other processes compute."""

import os
import subprocess
import sys
import time

import pytest

from infra.running import thread_waiting as busy


@pytest.mark.parametrize(
    ("share", "waiting"), [(0.0, "GOMP_SPINCOUNT"), (0.2, "GOMP_SPINCOUNT"), (0.6, "OMP_WAIT_POLICY")]
)
def test_they_spin_for_a_while_on_an_idle_machine_and_sleep_on_a_busy_one(share, waiting, monkeypatch):
    monkeypatch.setattr(busy, "busy_share", lambda: share)
    assert list(busy.thread_waiting()) == [waiting]


def test_what_others_compute_is_seen():
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.5)
        assert busy.busy_share(1.0) > 0.3 / (os.cpu_count() or 1)
    finally:
        other.kill()
        other.wait()
