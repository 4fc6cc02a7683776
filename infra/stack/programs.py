"""Servers of the stack: command, variables and health check of each."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httpx

from infra.files.private_files import write_privately
from infra.stack import object_server, postgres
from infra.stack.layout import HOST, USER, WORK_POOL, Layout

_QUIET = {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
_HTTP = httpx.Client(timeout=2)
"""Client for all health checks: creating one costs more than a check, and the starting servers need the processor."""


@dataclass(frozen=True)
class Program:
    """Server process."""

    name: str
    command: list[str]
    healthy: Callable[[], bool]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    """User that runs the process; empty: the current user."""
    stop_signal: str = "TERM"


def database(layout: Layout) -> Program:
    """Return the PostgreSQL program; SIGINT is its fast shutdown, SIGTERM would wait for clients."""
    return Program(
        "postgres",
        postgres.server_command(layout),
        lambda: postgres.accepts_connections(layout),
        user=postgres.server_user(),
        stop_signal="INT",
    )


def objects(layout: Layout) -> Program:
    """Return the program of the S3-compatible store.

    It is stopped by SIGKILL: on SIGTERM its parts wait 15 s for each other, and acknowledged writes are safe anyway.
    """
    return Program(
        "s3",
        object_server.server_command(layout),
        lambda: object_server.answers(layout),
        object_server.MEMORY,
        stop_signal="KILL",
    )


def prefect(layout: Layout) -> Program:
    """Return the Prefect server on PostgreSQL, protected by a password."""
    environment = {
        **_QUIET,
        "PREFECT_HOME": str(layout.folder / "prefect"),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": layout.database_url("asyncpg", "prefect"),
        "PREFECT_SERVER_API_AUTH_STRING": f"{USER}:{layout.passwords['prefect']}",
        "PREFECT_SERVER_UI_API_URL": f"{layout.prefect_url}/api",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": layout.prefect_url,
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
        # With the default, in memory, a restart of the server ends every run that holds a concurrency slot.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    }
    command = _python("-m", "prefect", "server", "start", "--host", HOST, "--port", str(layout.ports.prefect))
    return Program("prefect", command, lambda: _says_ok(f"{layout.prefect_url}/api/health"), environment)


def mlflow(layout: Layout) -> Program:
    """Return the MLflow server on PostgreSQL, with a password and host checks, and artifacts in the object store."""
    folder, here = layout.folder / "mlflow", f"{HOST}:{layout.ports.mlflow}"
    folder.mkdir(exist_ok=True)
    write_privately(folder / "auth.ini", _mlflow_auth(layout))
    client = layout.client_environment()
    environment = {
        **_QUIET,
        "MLFLOW_BACKEND_STORE_URI": layout.database_url("psycopg", "mlflow"),
        "MLFLOW_AUTH_CONFIG_PATH": str(folder / "auth.ini"),
        "MLFLOW_AUTH_ADMIN_PASSWORD": layout.passwords["mlflow"],
        "MLFLOW_FLASK_SERVER_SECRET_KEY": layout.passwords["mlflow_cookies"],
        "MLFLOW_S3_ENDPOINT_URL": client["DREAMGYM_S3_ENDPOINT"],
        "AWS_ACCESS_KEY_ID": client["DREAMGYM_S3_ACCESS_KEY"],
        "AWS_SECRET_ACCESS_KEY": client["DREAMGYM_S3_SECRET_KEY"],
        "AWS_DEFAULT_REGION": client["AWS_DEFAULT_REGION"],
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false",
    }
    options = {
        "app-name": "basic-auth",
        "host": HOST,
        "port": str(layout.ports.mlflow),
        "workers": "1",
        "artifacts-destination": client["DREAMGYM_OBJECT_STORE"].removesuffix("/objects") + "/mlflow",
        "allowed-hosts": f"{here},localhost:{layout.ports.mlflow}",
        "cors-allowed-origins": layout.mlflow_url,
    }
    given = [part for name, value in options.items() for part in (f"--{name}", value)]
    # its server process is a child that would outlive it and occupy the port
    command = _python("-m", "infra.running.guard", *_python("-m", "mlflow", "server", *given))
    return Program("mlflow", command, lambda: _says_ok(f"{layout.mlflow_url}/health"), environment)


def worker(layout: Layout) -> Program:
    """Return a Prefect worker that runs deployed flows as local processes, with the settings of the calling process."""
    command = _python("-m", "prefect", "worker", "start", "--pool", WORK_POOL, "--type", "process", "--name", "local")
    environment = {
        **_QUIET,
        **{name: value for name, value in os.environ.items() if name.startswith("DREAMGYM_")},
        **layout.client_environment(),
        "PREFECT_HOME": str(layout.folder / "worker"),
    }
    return Program("worker", command, lambda: True, environment)


def _python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def _mlflow_auth(layout: Layout) -> str:
    """Return MLflow's auth configuration. The cache avoids hashing the password, half a second, for each request."""
    return f"""\
[mlflow]
default_permission = READ
auth_cache_ttl_seconds = 60
database_uri = {layout.database_url("psycopg", "mlflow")}
admin_username = {USER}
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
"""


def _says_ok(url: str) -> bool:
    try:
        return _HTTP.get(url).status_code == 200
    except httpx.HTTPError:
        return False
