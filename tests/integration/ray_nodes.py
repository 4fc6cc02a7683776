"""Ray cluster of two nodes on this machine: two raylets, each with an address of its own on loopback."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.free_ports import free_port

_RAY = Path(sys.executable).with_name("ray")
_AS_OTHERS = {"RAY_worker_niceness": "0"}
"""Variables that give Ray's workers a normal priority.

By default (15) they give way to all others, and on a busy machine get a thirtieth of a core: they seem to hang.
"""
_HEAD, _SECOND = "127.0.0.3", "127.0.0.2"


@dataclass
class Nodes:
    """Head node, and a second one that may die."""

    address: str
    folder: str

    def num_busy(self) -> int:
        """Return the number of nodes with a worker in a call; processes that a worker forks have its title, too."""
        raylets = [self._raylet(address) for address in (_HEAD, _SECOND)]
        return sum(any(map(_is_at_work, raylet.children())) for raylet in raylets)

    def kill_second(self) -> None:
        """Kill the second node's raylet and all that runs under it, at once."""
        raylet = self._raylet(_SECOND)
        for process in (raylet, *raylet.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)

    def _raylet(self, address: str) -> psutil.Process:
        """Return a node's raylet; a process that it forks looks like it for a moment."""
        found = [one for one in psutil.process_iter() if _is_raylet_of(one, address, self.folder)]
        return min(found, key=psutil.Process.create_time)


def _is_at_work(worker: psutil.Process) -> bool:
    return _title(worker).startswith("ray::_as_worker")


def _title(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _is_raylet_of(process: psutil.Process, address: str, folder: str) -> bool:
    title = _title(process)
    return "/raylet" in title.split(" ")[0] and f"--node_ip_address={address}" in title and folder in title


@contextmanager
def two_nodes(**settings: str) -> Iterator[Nodes]:
    """Yield a running cluster, with these settings on both nodes."""
    port = free_port(_HEAD)
    address, one_cpu = f"{_HEAD}:{port}", ("--num-cpus", "1", "--object-store-memory", "100000000")
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        told = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder, **_AS_OTHERS, **settings}
        quiet = ("--include-dashboard", "false", "--disable-usage-stats", "--temp-dir", folder)
        head = ("--head", "--port", str(port), "--node-ip-address", _HEAD, *quiet)
        try:
            for node in (head, ("--address", address, "--node-ip-address", _SECOND)):
                subprocess.run([_RAY, "start", *node, *one_cpu], env=told, check=True, capture_output=True, text=True)
            yield Nodes(address, folder)
        finally:
            _end_all_about(folder)


def _end_all_about(folder: str) -> None:
    for process in psutil.process_iter():
        if folder in _title(process):
            with suppress(psutil.Error):
                for one in (*process.children(recursive=True), process):
                    one.kill()
