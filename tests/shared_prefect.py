"""One Prefect server for many runs; one for each would cost more than a toy run itself.

Where tests run in several processes, the process that divides them among the others starts it.
"""

import os
import sys
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from infra.running.guard import started
from tests.free_ports import free_ports
from tests.patient import until

_KEY = "prefect_server"
_kept: list[object] = []
"""Server and its folder, until this process ends: Prefect's client sends it its last log lines then."""


@cache
def started_prefect() -> str:
    """Start the server of this process if it has none yet, and return its URL; it may not answer yet."""
    (port,) = free_ports(1)
    home = TemporaryDirectory(prefix="prefect-", ignore_cleanup_errors=True)
    application = ("--factory", "prefect.server.api.server:create_app", "--port", str(port), "--log-level", "error")
    settings = {
        "PREFECT_HOME": home.name,
        "PREFECT_UI_ENABLED": "0",
        "PREFECT__SERVER_EPHEMERAL": "1",  # no services: they would search the database several times a second
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
    }
    _kept.extend((home, started([sys.executable, "-m", "uvicorn", *application], {**os.environ, **settings})))
    return f"http://127.0.0.1:{port}/api"


def share_prefect(workerinput: dict[str, Any]) -> None:
    """Tell a test process of the server of this one."""
    workerinput[_KEY] = started_prefect()


@pytest.fixture(scope="session")
def prefect_server(request) -> str:
    url = getattr(request.config, "workerinput", {}).get(_KEY) or started_prefect()
    until(lambda: _answers(url), 300)
    return url


@pytest.fixture
def shared_prefect(prefect_server, monkeypatch) -> str:
    """Let the runs of this test use the shared server, and return its URL."""
    monkeypatch.setenv("PREFECT_API_URL", prefect_server)
    return prefect_server


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5, verify=False).is_success
    except httpx.HTTPError:
        return False
