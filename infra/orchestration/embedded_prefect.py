"""Embedded Prefect, for processes without a configured server. Call before Prefect is imported."""

import os
from pathlib import Path

from infra.orchestration.prefect_server import start_prefect
from infra.running.interrupts import handle_interrupts
from infra.running.thread_waiting import thread_waiting
from infra.settings import settings


def embed_prefect() -> None:
    """Configure Prefect to store its database and results in home and to send no telemetry.

    Variables that are already set stay unchanged; PREFECT_API_URL, for example, names a real server.
    """
    folder = settings().home.absolute() / "prefect"
    defaults = {
        "PREFECT_HOME": str(folder),
        "PREFECT_LOCAL_STORAGE_PATH": str(folder / "results"),
        "PREFECT_SERVER_EPHEMERAL_ENABLED": "true",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_LOGGERS_PREFECT_FLOW_RUNS_LEVEL": "INFO",  # for the flow run's page, not for the console
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_FLOW_RUNS_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
        "DO_NOT_TRACK": "1",
        "MLFLOW_LOGGING_LEVEL": "ERROR",
        **thread_waiting(),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    if not os.environ.get("PREFECT_API_URL", "").startswith("https"):
        # Plain HTTP has no certificates to verify, and reading them costs each of a run's 75 clients 45 ms.
        defaults["PREFECT_API_TLS_INSECURE_SKIP_VERIFY"] = "true"
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    Path(os.environ["PREFECT_HOME"]).mkdir(parents=True, exist_ok=True)


def open_prefect() -> None:
    """Prepare a process that runs flows: start embedded Prefect in parallel to the imports, and handle Ctrl-C.

    Raises:
        StorageError: a server is configured, but it does not answer.
    """
    embed_prefect()
    handle_interrupts()
    start_prefect()
