"""Server of an environment in this process, for as long as a test needs it; and OpenEnv's own client."""

import json
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from platformdirs import user_cache_path

from infra.serving.openenv import Limits, Served, app_of

_CLIENT = "openenv-core==0.3.0"


@contextmanager
def serving(served: Served, limits: Limits | None = None, token: str = "") -> Iterator[str]:
    """Yield the server's address. It sends no pings: only its own limits end a session."""
    app = app_of(served, limits or Limits(), token)
    config = uvicorn.Config(app, port=0, log_level="warning", access_log=False, ws_ping_interval=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.05)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"ws://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(60)
    assert not thread.is_alive(), "the server did not end"


def play_with_openenv(url: str, episodes: list[dict]) -> list[dict]:
    """Return what OpenEnv's own client sees of these episodes, played at once."""
    script = Path(__file__).with_name("openenv_client.py")
    asked = json.dumps({"url": url, "episodes": episodes})
    done = subprocess.run([_python(), script], input=asked, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _python() -> Path:
    """Return the Python of a virtual environment with the client, created on first use: its pins conflict with ours."""
    home = user_cache_path("dreamgym") / "clients" / _CLIENT
    if not (home / "made").exists():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", _CLIENT], check=True, stdout=sys.stderr)
        (home / "made").touch()
    return home / "bin" / "python"
