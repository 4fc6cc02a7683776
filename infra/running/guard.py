"""Run a command that ends when its parent does, even if killed: `python -m infra.running.guard COMMAND...`.

The parent holds the other end of standard input. When that closes, the command ends, or SIGTERM arrives, the command's
whole process group is ended. SIGUSR1 aborts the group: Python processes print the stack of each thread and die. The
command gets a temporary folder of its own, which is removed at the end.
"""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from tempfile import TemporaryDirectory

_PATIENCE_S = 10


def started(command: list[str], environment: dict[str, str], folder: str | None = None) -> "subprocess.Popen[bytes]":
    """Start a guarded server in its own session, out of reach of Ctrl-C. `communicate` or our exit ends it."""
    guarded = [sys.executable, "-m", "infra.running.guard", *command]
    return subprocess.Popen(  # noqa: S603
        guarded, env=environment, cwd=folder, stdin=subprocess.PIPE, start_new_session=True
    )


def main(command: list[str]) -> int:
    """Run the command and return its exit code; its process group is gone by then."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with TemporaryDirectory(prefix="dreamgym-", ignore_cleanup_errors=True) as folder:
        return _guarded(command, {**os.environ, "PYTHONFAULTHANDLER": "1", "TMPDIR": folder})


def _guarded(command: list[str], environment: dict[str, str]) -> int:
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
    signal.signal(signal.SIGUSR1, lambda *_: _abort(process))
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=_end, args=[process], daemon=True).start())
    threading.Thread(target=_end_with_parent, args=[process], daemon=True).start()
    try:
        return process.wait()
    finally:
        _end(process)


def _end_with_parent(process: "subprocess.Popen[bytes]") -> None:
    os.read(sys.stdin.fileno(), 1)  # a buffered read would hold a lock that the interpreter needs at exit
    _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the whole process group: SIGTERM first, SIGKILL after a grace period."""
    deadline = time.monotonic() + _PATIENCE_S
    _signal(process, signal.SIGTERM)
    while _is_left(process) and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal(process, signal.SIGKILL)


def _is_left(process: "subprocess.Popen[bytes]") -> bool:
    """Return True if any process of the group is left."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _abort(process: "subprocess.Popen[bytes]") -> None:
    """Abort the group; a stopped process handles the signal only after SIGCONT."""
    _signal(process, signal.SIGABRT)
    _signal(process, signal.SIGCONT)


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Send a signal to the group, if any process of it is left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
