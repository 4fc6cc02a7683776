"""Who is at work on a home, for tests of what outlives what."""

from contextlib import suppress
from pathlib import Path

import psutil


def at_work_on(home: Path) -> list[list[str]]:
    """Command lines of the processes on a home."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            if process.environ().get("DREAMGYM_HOME") == str(home):
                found.append(process.cmdline())
    return found
