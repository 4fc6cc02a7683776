"""The servers of the stack: how each is started, with what, and how to tell that it is healthy."""

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
"""One for all questions: to make it costs more than to ask, while the servers want the processor to start."""


@dataclass(frozen=True)
class Program:
    """One server process."""

    name: str
    command: list[str]
    healthy: Callable[[], bool]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    """Whom it runs as; empty: us."""
    stop_signal: str = "TERM"


def database(layout: Layout) -> Program:
    """PostgreSQL; SIGINT is its fast shutdown, SIGTERM would wait for clients."""
    return Program(
        "postgres",
        postgres.server_command(layout),
        lambda: postgres.accepts_connections(layout),
        user=postgres.server_user(),
        stop_signal="INT",
    )


def objects(layout: Layout) -> Program:
    """The S3-compatible store.

    SIGTERM would have its parts wait a quarter of a minute for each other; what it acknowledged is written anyway.
    """
    return Program(
        "s3",
        object_server.server_command(layout),
        lambda: object_server.answers(layout),
        object_server.MEMORY,
        stop_signal="KILL",
    )


def prefect(layout: Layout) -> Program:
    """The Prefect server on PostgreSQL, behind a password."""
    environment = {
        **_QUIET,
        "PREFECT_HOME": str(layout.folder / "prefect"),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": layout.database_url("asyncpg", "prefect"),
        "PREFECT_SERVER_API_AUTH_STRING": f"{USER}:{layout.passwords['prefect']}",
        "PREFECT_SERVER_UI_API_URL": f"{layout.prefect_url}/api",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": layout.prefect_url,
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
        # In memory, its default, a restart of the server ends every run that has a place among a limited number.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    }
    command = _python("-m", "prefect", "server", "start", "--host", HOST, "--port", str(layout.ports.prefect))
    return Program("prefect", command, lambda: _says_ok(f"{layout.prefect_url}/api/health"), environment)


def mlflow(layout: Layout) -> Program:
    """The MLflow server on PostgreSQL, behind a password and host checks, with its artifacts in the object store."""
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
    # its server process is a child of it, which would outlive it and hold the port
    command = _python("-m", "infra.running.guard", *_python("-m", "mlflow", "server", *given))
    return Program("mlflow", command, lambda: _says_ok(f"{layout.mlflow_url}/health"), environment)


def worker(layout: Layout) -> Program:
    """A Prefect worker that runs deployed flows as processes here, with the settings that `up` was called with."""
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
    """Passwords are hashed anew for each request unless remembered, which takes half a second."""
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
