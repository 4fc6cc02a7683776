"""Lease: one holder at a time; a dead one is succeeded at once, a silent one after a while, and it notices."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from infra.running.interrupts import stop_if_requested
from infra.storage import lease as leases
from infra.storage.blobs import FolderBlobs
from infra.storage.lease import Lease
from schemas.errors import ConflictError

pytestmark = pytest.mark.integration


def hold(root: Path, journal: Path, seconds: float) -> None:
    with Lease(FolderBlobs(root), "cycle", lambda _: None), journal.open("a") as file:
        for word in ("in", "out"):
            file.write(f"{os.getpid()} {word}\n")
            file.flush()
            time.sleep(seconds if word == "in" else 0)


def test_one_works_at_a_time_and_all_get_their_turn(tmp_path):
    context, journal = multiprocessing.get_context("spawn"), tmp_path / "journal"
    workers = [context.Process(target=hold, args=(tmp_path / "store", journal, 0.2)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    moves = [line.split() for line in journal.read_text().splitlines()]
    assert [word for _, word in moves] == ["in", "out"] * 4
    assert all(entered == left for (entered, _), (left, _) in zip(moves[::2], moves[1::2], strict=True))


def test_a_killed_holder_is_succeeded_at_once(tmp_path):
    journal = tmp_path / "journal"
    holder = multiprocessing.get_context("spawn").Process(target=hold, args=(tmp_path / "store", journal, 600))
    holder.start()
    while not journal.exists() or not journal.read_text():
        time.sleep(0.05)
    os.kill(holder.pid, signal.SIGKILL)
    said: list[str] = []
    began = time.monotonic()
    with Lease(FolderBlobs(tmp_path / "store"), "cycle", said.append):
        assert time.monotonic() - began < leases.BEAT_EVERY_S
    holder.join()


_IN_ANOTHER_NAMESPACE = """
import sys, time
from pathlib import Path
from infra.storage.blobs import FolderBlobs
from infra.storage.lease import Lease

with Lease(FolderBlobs(Path(sys.argv[1])), "cycle", print):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_live_holder_in_another_namespace_of_process_ids_keeps_its_lease(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "_DEAD_AFTER_S", 1.0)
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        pytest.skip("a namespace of process ids needs root: run as root to test one")
    command = [*inside, sys.executable, "-c", _IN_ANOTHER_NAMESPACE, str(tmp_path)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        assert leases.holder(FolderBlobs(tmp_path), "cycle", 1).pid < 10, "an id that is another process's here"
        assert not leases.is_free(FolderBlobs(tmp_path), "cycle", 1)
    finally:
        holder.kill()
        holder.wait()
    with Lease(FolderBlobs(tmp_path), "cycle", lambda _: None):
        assert leases.last_number(FolderBlobs(tmp_path), "cycle") == 2, "its silence frees it"


def test_a_silent_holder_elsewhere_is_succeeded_and_stops_when_it_wakes(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "_DEAD_AFTER_S", 1.0)
    blobs, said = FolderBlobs(tmp_path), []
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(leases.socket, "gethostname", lambda: "elsewhere")
        sleeper = Lease(blobs, "cycle", said.append)
    assert sleeper._taken()
    sleeper._beat()
    with Lease(blobs, "cycle", said.append):
        assert "on elsewhere: waiting for it" in said[0]
        sleeper._beat()
        with pytest.raises(ConflictError, match="taken over"):
            stop_if_requested()
        stop_if_requested()
