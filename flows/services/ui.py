"""MLflow and Prefect pages for this home's stores, on loopback."""

import os
import sys
import time
from collections.abc import Callable

from infra.running.guard import started
from infra.settings import settings
from schemas.errors import DreamGymError, InputError


def print_pages(addresses: dict[str, str]) -> None:
    """Print the addresses of both pages on standard error."""
    sys.stderr.write(f"MLflow  {addresses['mlflow']}\nPrefect {addresses['prefect']}\nCtrl-C stops both\n")


def serve_ui(mlflow_port: int, prefect_port: int, show: Callable[[dict[str, str]], None]) -> None:
    """Start both servers and wait until Ctrl-C or until one of them ends.

    Args:
        mlflow_port: Port of the MLflow page.
        prefect_port: Port of the Prefect page.
        show: Receives the addresses once both servers are started.

    Raises:
        InputError: the stores are on servers, which serve their own pages.
    """
    home = settings()
    if home.tracking.startswith("http"):
        raise InputError(
            f"this home's stores are on servers, whose pages are {home.tracking_shown} and "
            f"{os.environ.get('PREFECT_API_URL', '').removesuffix('/api')} (`dreamgym up` starts those of this home)"
        )
    mlflow = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--workers",
        "1",
        "--default-artifact-root",
        (home.home.absolute() / "artifacts").as_uri(),
        "--host",
        "127.0.0.1",
        "--port",
        str(mlflow_port),
    ]
    prefect = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(prefect_port)]
    # The page asks the server for its API's address, and the server would answer with the default port.
    variables = {
        **os.environ,
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{prefect_port}/api",
        "MLFLOW_BACKEND_STORE_URI": home.tracking,  # arguments are visible to every user of the machine
    }
    servers = [started(command, variables) for command in (mlflow, prefect)]
    show({"mlflow": f"http://127.0.0.1:{mlflow_port}", "prefect": f"http://127.0.0.1:{prefect_port}"})
    try:
        while all(server.poll() is None for server in servers):
            time.sleep(0.5)
        raise DreamGymError("one of the two servers ended, see above; is its port taken? --mlflow-port, --prefect-port")
    except KeyboardInterrupt:
        return
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.communicate(timeout=20)
