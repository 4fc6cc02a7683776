"""Run a command that ends when its parent does, however that ends: `python -m infra.running.guard COMMAND...`.

The parent holds the other end of standard input; when nobody does any more, or the command itself ends, or we are sent
SIGTERM, the command's whole group is ended. Sent SIGUSR1, the group is aborted: Python processes write down where each of
their threads stands, and die. What the command leaves in its folder for temporary files goes with it.
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


def started(command: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """A guarded server, in a session of its own: Ctrl-C is for us. `communicate` ends it, as our own end does."""
    guarded = [sys.executable, "-m", "infra.running.guard", *command]
    return subprocess.Popen(guarded, env=environment, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603


def main(command: list[str]) -> int:
    """Its exit code; nothing of its group is left then."""
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
    os.read(sys.stdin.fileno(), 1)  # a buffered read would hold a lock that the interpreter needs when it ends
    _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The whole group, which gets a while to end by itself."""
    deadline = time.monotonic() + _PATIENCE_S
    _signal(process, signal.SIGTERM)
    while _is_left(process) and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal(process, signal.SIGKILL)


def _is_left(process: "subprocess.Popen[bytes]") -> bool:
    """Whether anything of its group is."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _abort(process: "subprocess.Popen[bytes]") -> None:
    """One that was stopped hears of it only when it goes on."""
    _signal(process, signal.SIGABRT)
    _signal(process, signal.SIGCONT)


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    """To its group, if anything of it is left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
