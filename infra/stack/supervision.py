"""Supervisor process that starts, restarts and stops the servers, and rotates their logs."""

import os
import sys
import time
import xmlrpc.client
from collections.abc import Mapping, Sequence
from configparser import RawConfigParser
from io import StringIO
from pathlib import Path
from subprocess import run
from typing import Any

from supervisor.xmlrpc import SupervisorTransport

from infra.files.private_files import write_privately
from infra.stack.layout import USER, Layout
from infra.stack.programs import Program
from schemas.errors import DreamGymError, InputError

_MAX_SOCKET_PATH = 100
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
"""Variables that all servers inherit; all others are set per server."""


def write_configuration(layout: Layout, programs: Sequence[Program]) -> None:
    """Write supervisor's configuration with mode 600, as it contains passwords. Servers stop in reverse order.

    Raises:
        InputError: the path of the folder is too long for a socket.
    """
    if len(str(_socket(layout))) > _MAX_SOCKET_PATH:
        raise InputError(f"the path {layout.folder} is too long for a socket in it: choose a shorter DREAMGYM_HOME")
    parser = RawConfigParser()
    for section, values in _sections(layout, programs).items():
        parser[section] = values
    text = StringIO()
    parser.write(text)
    write_privately(_conf(layout), text.getvalue())


def _sections(layout: Layout, programs: Sequence[Program]) -> dict[str, dict[str, str]]:
    login = {"username": USER, "password": layout.passwords["supervisor"]}
    supervisord = {
        "logfile": str(layout.logs / "supervisor.log"),
        "pidfile": str(_pid_file(layout)),
        "directory": "/",
    }
    if os.geteuid() == 0:
        supervisord["user"] = "root"
    return {
        "unix_http_server": {"file": str(_socket(layout)), "chmod": "0700", **login},
        "supervisorctl": {"serverurl": f"unix://{_socket(layout)}", **login},
        "supervisord": supervisord,
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        },
        **{f"program:{one.name}": _section(layout, one, rank) for rank, one in enumerate(programs, 1)},
    }


def _section(layout: Layout, program: Program, rank: int) -> dict[str, str]:
    section = {
        "priority": str(rank),
        "command": " ".join(map(_quoted, program.command)),
        "environment": ",".join(f"{name}={_quoted(value)}" for name, value in program.environment.items()),
        "stdout_logfile": str(layout.logs / f"{program.name}.log"),
        "stdout_logfile_maxbytes": "10MB",
        "stdout_logfile_backups": "3",
        "redirect_stderr": "true",
        "autostart": "false",
        "autorestart": "true",
        "startretries": "10",
        "stopsignal": program.stop_signal,
        "stopasgroup": "true" if program.stop_signal == "TERM" else "false",
        "killasgroup": "true",
        "stopwaitsecs": "20",
    }
    return section | ({"user": program.user} if program.user else {})


def _quoted(text: str) -> str:
    """Quote a value for supervisor: in double quotes, with percent signs doubled."""
    return '"' + text.replace("%", "%%").replace('"', '\\"') + '"'


def start(layout: Layout) -> None:
    """Start supervisor in the background, without any server.

    Raises:
        DreamGymError: supervisor did not start.
    """
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(_conf(layout))]
    done = run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise DreamGymError(f"supervisor did not start: {(done.stderr or done.stdout).strip()[-500:]}")


def is_running(layout: Layout) -> bool:
    """Return True if supervisor answers."""
    try:
        _remote(layout).getState()
    except (OSError, xmlrpc.client.Error):
        return False
    return True


def start_program(layout: Layout, name: str) -> None:
    """Start a server unless it is running."""
    if states(layout)[name] not in ("RUNNING", "STARTING"):
        _remote(layout).startProcess(name, False)


def states(layout: Layout) -> Mapping[str, str]:
    """Return supervisor's state name of each server."""
    return {one["name"]: one["statename"] for one in _remote(layout).getAllProcessInfo()}


def stop(layout: Layout, timeout_s: float = 60) -> None:
    """Stop all servers, the last one first, and supervisor; wait until they are gone.

    Raises:
        DreamGymError: supervisor did not stop in time.
    """
    deadline = time.monotonic() + timeout_s
    _remote(layout).shutdown()
    while _pid_file(layout).exists():
        if time.monotonic() > deadline:
            raise DreamGymError(f"supervisor did not stop within {timeout_s:.0f} s; see {layout.logs}/supervisor.log")
        time.sleep(0.1)


def _remote(layout: Layout) -> Any:
    transport = SupervisorTransport(USER, layout.passwords["supervisor"], f"unix://{_socket(layout)}")
    return xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport).supervisor


def _conf(layout: Layout) -> Path:
    return layout.folder / "supervisor.conf"


def _socket(layout: Layout) -> Path:
    return layout.folder / "supervisor.sock"


def _pid_file(layout: Layout) -> Path:
    return layout.folder / "supervisor.pid"
