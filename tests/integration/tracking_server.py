"""Real MLflow server that can be killed and started again on the same database."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx


@contextmanager
def mlflow_server(home: Path, port: int) -> Iterator[None]:
    """Run the server while the context lasts, then kill it."""
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", "127.0.0.1", "--port", str(port)]
    told = {
        **os.environ,
        "MLFLOW_BACKEND_STORE_URI": f"sqlite:///{home}/server.db",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    process = subprocess.Popen(
        command, env=told, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except httpx.HTTPError:
                assert process.poll() is None
                time.sleep(0.2)
        yield
    finally:
        os.killpg(process.pid, 9)
        process.wait()
