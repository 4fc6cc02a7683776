"""Embedded Prefect's server: a process that starts beside our imports and ends with us, however we end.

Prefect would start one by itself, but that one outlives a killed run, and its code would be imported here, too.
"""

import atexit
import os
import socket
import subprocess
import sys
import time

import httpx

from infra.running.guard import started
from infra.running.reachable import require_server
from schemas.errors import StorageError

_READY_WITHIN_S = 180
_END_WITHIN_S = 20
_FOR_ONE_RUN = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
"""What Prefect tells servers that it starts by itself."""

_starting: list["subprocess.Popen[bytes]"] = []
_embedded: set[str] = set()
"""Addresses of servers that this process started, and that end with it."""


def is_server_named() -> bool:
    """Whether there is a server that outlives this process, with deployments that listen to events."""
    return os.environ.get("PREFECT_API_URL", "") not in {"", *_embedded}


def start_prefect() -> None:
    """Let a server start, which takes seconds, while the caller imports the rest; unless one is named.

    Raises:
        StorageError: the one that is named does not answer.
    """
    port = _free_port()
    server = (
        None if os.environ.get("PREFECT_API_URL") else _started(port)
    )  # before Prefect itself is imported: it takes a second
    from prefect.context import refresh_global_settings_context
    from prefect.settings import PREFECT_API_URL

    refresh_global_settings_context()  # somebody may have imported Prefect before the variables were set
    if named := PREFECT_API_URL.value():
        if server:  # a profile of Prefect's names one
            _end(server)
        return require_server("Prefect", named, "/api/health")
    assert server is not None, "where no variable names a server, one was started"
    _starting.append(server)
    atexit.register(_end, server)
    os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"
    _embedded.add(os.environ["PREFECT_API_URL"])
    refresh_global_settings_context()


def await_prefect() -> None:
    """Wait for the server that `start_prefect` began to start, if it did.

    Raises:
        StorageError: it does not start.
    """
    while _starting:
        _await_health(_starting.pop())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _started(port: int) -> "subprocess.Popen[bytes]":
    """Guarded, so that Ctrl-C is not for it: an interrupted run still has to tell its server that it ended."""
    command = [
        *(sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"),
        *("--host", "127.0.0.1", "--port", str(port), "--log-level", "error", "--lifespan", "on"),
    ]
    return started(command, {**os.environ, **_FOR_ONE_RUN})


def _await_health(server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while server.poll() is None and time.monotonic() < deadline:
        try:
            httpx.get(f"{os.environ['PREFECT_API_URL']}/health", timeout=5).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise StorageError("embedded Prefect does not start; run the same command again, or name a server: PREFECT_API_URL")


def _end(server: "subprocess.Popen[bytes]") -> None:
    """What it guards ends when nobody holds its input any more."""
    server.communicate(timeout=_END_WITHIN_S)
