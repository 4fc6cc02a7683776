"""One Prefect server for many runs of a test process; one for each would cost more than a toy run itself."""

import os
import subprocess
import sys

import httpx
import pytest

from infra.running.guard import started
from tests.free_ports import free_ports
from tests.patient import until

_servers: list["subprocess.Popen[bytes]"] = []
"""Servers that run until this process ends: Prefect's client sends them its last log lines then.

They end right after it.
"""


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory) -> str:
    (port,) = free_ports(1)
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "--factory",
        "prefect.server.api.server:create_app",
        "--port",
        str(port),
    ]
    settings = {"PREFECT_HOME": str(tmp_path_factory.mktemp("prefect")), "PREFECT_UI_ENABLED": "0"}
    quiet = {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
    }
    _servers.append(started([*command, "--log-level", "error"], {**os.environ, **settings, **quiet}))
    url = f"http://127.0.0.1:{port}/api"
    until(lambda: _answers(url), 180)
    return url


@pytest.fixture
def shared_prefect(prefect_server, monkeypatch) -> str:
    """Let the runs of this test use the shared server, and return its URL."""
    monkeypatch.setenv("PREFECT_API_URL", prefect_server)
    return prefect_server


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).is_success
    except httpx.HTTPError:
        return False
