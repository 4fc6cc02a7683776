"""A Ray cluster of two nodes on this machine: two raylets, each with an address of its own on loopback."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_RAY = Path(sys.executable).with_name("ray")


def _title(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


@contextmanager
def two_nodes(**settings: str) -> Iterator[str]:
    """Address of the cluster while it lasts, with these settings on both nodes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.3", 0))
        port = probe.getsockname()[1]
    address, one_cpu = f"127.0.0.3:{port}", ("--num-cpus", "1", "--object-store-memory", "100000000")
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        told = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder, **settings}
        quiet = ("--include-dashboard", "false", "--disable-usage-stats", "--temp-dir", folder)
        head = ("--head", "--port", str(port), "--node-ip-address", "127.0.0.3", *quiet)
        try:
            for node in (head, ("--address", address, "--node-ip-address", "127.0.0.2")):
                subprocess.run([_RAY, "start", *node, *one_cpu], env=told, check=True, capture_output=True, text=True)
            yield address
        finally:
            _end_all_about(folder)


def _end_all_about(folder: str) -> None:
    for process in psutil.process_iter():
        if folder in _title(process):
            with suppress(psutil.Error):
                for one in (*process.children(recursive=True), process):
                    one.kill()
