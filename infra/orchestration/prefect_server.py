"""Server of embedded Prefect: a child process that starts during our imports and ends with us, even if we are killed.

Prefect can start a server itself, but that one outlives a killed run, and its code would be imported here as well.
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
"""Variables that Prefect sets for the servers it starts itself."""

_starting: list["subprocess.Popen[bytes]"] = []
_embedded: set[str] = set()
"""Addresses of the servers that this process started; they end with it."""


def is_server_named() -> bool:
    """Return True if Prefect uses a server that outlives this process, with deployments that receive events."""
    return os.environ.get("PREFECT_API_URL", "") not in {"", *_embedded}


def start_prefect() -> None:
    """Start a server in the background unless one is configured; it takes seconds, while the caller imports the rest.

    Raises:
        StorageError: the configured server does not answer.
    """
    named = os.environ.get("PREFECT_API_URL", "")
    if named in _embedded:
        return  # started for an earlier run of this process
    if not named:
        _start_embedded()  # before Prefect itself is imported, which takes a second
    from prefect.context import refresh_global_settings_context

    refresh_global_settings_context()  # Prefect may have been imported before the variables were set
    if named:
        require_server("Prefect", named, "/api/health")


def _start_embedded() -> None:
    port = _free_port()
    server = _started(port)
    _starting.append(server)
    atexit.register(_end, server)
    os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"
    _embedded.add(os.environ["PREFECT_API_URL"])


def await_prefect() -> None:
    """Wait until the server started by `start_prefect` is healthy; return at once if there is none.

    Raises:
        StorageError: the server does not start.
    """
    while _starting:
        _await_health(_starting.pop())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _started(port: int) -> "subprocess.Popen[bytes]":
    """Start a server that Ctrl-C does not reach: an interrupted run still has to report its end to it.

    It runs in Prefect's home, because it would read prefect.toml and .env of the working folder.
    """
    command = [
        *(sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"),
        *("--host", "127.0.0.1", "--port", str(port), "--log-level", "error", "--lifespan", "on"),
    ]
    return started(command, {**os.environ, **_FOR_ONE_RUN}, os.environ["PREFECT_HOME"])


def _await_health(server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    with httpx.Client(base_url=os.environ["PREFECT_API_URL"], timeout=5) as client:
        while server.poll() is None and time.monotonic() < deadline:
            try:
                client.get("/health").raise_for_status()
            except httpx.HTTPError:
                time.sleep(0.1)
            else:
                return
    raise StorageError("embedded Prefect does not start; run the same command again, or name a server: PREFECT_API_URL")


def _end(server: "subprocess.Popen[bytes]") -> None:
    """End the server by closing the guard's standard input."""
    server.communicate(timeout=_END_WITHIN_S)
