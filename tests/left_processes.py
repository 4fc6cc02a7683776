"""Processes that run on a home, for tests of what outlives what."""

from contextlib import suppress
from pathlib import Path

import psutil


def processes_on(home: Path) -> list[list[str]]:
    """Return the command lines of the processes whose DREAMGYM_HOME is this home."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            if process.environ().get("DREAMGYM_HOME") == str(home):
                found.append(process.cmdline())
    return found


def workers_of(pid: int) -> list[psutil.Process]:
    """Return the processes that answer calls of a process."""
    return [one for one in psutil.Process(pid).children() if "infra.running.processes" in one.cmdline()]
