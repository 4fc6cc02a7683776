"""Calls in processes of this machine, which share its threads and stay for later calls.

Python's own pools run the script of the caller again in each process, which a script may not be written for. Ours run
nothing but the function: `python -m infra.running.processes MODULE FUNCTION DESCRIPTOR`. They end when we do, even if
we are killed.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue

from infra.settings import PREFIX, Settings
from schemas import errors
from schemas.errors import DreamGymError, EngineError

_LOOK_EVERY_S = 1.0
_SHARED = ("num_threads", "environment_processes", "endpoint_concurrency")
"""Settings that are divided among processes."""
_ANSWERED, _FAILED = b"+", b"-"


def in_processes(
    settings: Settings,
    function: Callable[[bytes], bytes],
    payloads: Sequence[bytes],
    on_progress: Callable[[int], None] = lambda num_done: None,
) -> list[bytes]:
    """Apply a function to each payload, in at most as many processes as there are threads, and return the results in order.

    A payload goes to the process of its place, so that equal calls find what the process kept of earlier ones.

    Args:
        settings: Threads, processes of environments and requests to endpoints, which the processes share.
        function: Top-level function of a module.
        payloads: One payload per call.
        on_progress: Called regularly with the number of finished calls; if it raises, all processes end.

    Raises:
        EngineError: a process died.
        DreamGymError: a call failed; the error has the class and message of the one that was raised there.
    """
    workers = _workers(settings, function, min(settings.num_threads, len(payloads)))
    try:
        for place, payload in enumerate(payloads):
            workers[place % len(workers)].ask(place, payload)
        answers: dict[int, bytes] = {}
        while len(answers) < len(payloads):
            answers |= _next_answers(workers)
            on_progress(len(answers))
    except BaseException:
        end_processes()
        raise
    return [answers[place] for place in range(len(payloads))]


class _Worker:
    """Process that answers payloads in the order in which they were sent."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.connection, theirs = Pipe()
        descriptor = theirs.fileno()
        self._process = subprocess.Popen(  # noqa: S603
            [*command, str(descriptor)],
            env=environment,
            pass_fds=[descriptor],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us, who end it
        )
        theirs.close()
        self.asked: list[int] = []
        """Places of the payloads that are not answered yet."""

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, place: int, payload: bytes) -> None:
        with self._death_explained():
            self.connection.send_bytes(payload)
        self.asked.append(place)

    def answer(self) -> tuple[int, bytes]:
        """Return the place of the next answer, and the answer."""
        with self._death_explained():
            said = self.connection.recv_bytes()
        if said[:1] == _FAILED:
            raise _error_of(**json.loads(said[1:]))
        return self.asked.pop(0), said[1:]

    def end(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.wait()

    @contextmanager
    def _death_explained(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError) as error:
            raise EngineError(
                f"a process that worked on a part of a stage died (exit code {self._process.wait()}): if memory was short, "
                f"{PREFIX}NUM_THREADS=1 does without. Run the same command again; finished steps are not repeated"
            ) from error


_running: dict[tuple[str, ...], list[_Worker]] = {}
"""Processes by command and settings: those of one run, or of one test."""


def _workers(settings: Settings, function: Callable[[bytes], bytes], number: int) -> list[_Worker]:
    """Return this many processes, of which some may have answered before."""
    command = [sys.executable, "-m", "infra.running.processes", function.__module__, function.__name__]
    shares = {f"{PREFIX}{name}".upper(): str(max(1, getattr(settings, name) // number)) for name in _SHARED}
    environment = {**os.environ, **shares, "OMP_NUM_THREADS": shares[f"{PREFIX}NUM_THREADS"]}
    key = (*command, *sorted(f"{name}={value}" for name, value in environment.items() if name.startswith(PREFIX)))
    if key not in _running:
        end_processes()
        _running[key] = []
    alive = [worker for worker in _running[key] if worker.is_alive]
    _running[key] = alive + [_Worker(command, environment) for _ in range(number - len(alive))]
    return _running[key]


def _next_answers(workers: Sequence[_Worker]) -> dict[int, bytes]:
    """Return the answers that arrive within a second, by place."""
    busy = [worker for worker in workers if worker.asked]
    ready = wait([worker.connection for worker in busy], _LOOK_EVERY_S)
    return dict(worker.answer() for worker in busy if worker.connection in ready)


def _error_of(kind: str, message: str, trace: str) -> Exception:
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, DreamGymError):
        return known(message)
    return RuntimeError(f"{kind}: {message}, in a process of its own:\n{trace}")


@atexit.register
def end_processes() -> None:
    """End all processes, whatever they do."""
    for worker in [one for some in _running.values() for one in some]:
        worker.end()
    _running.clear()


def _serve(function: Callable[[bytes], bytes], connection: Connection) -> None:
    """Answer one payload after another."""
    payloads: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=[connection, payloads], daemon=True).start()
    while True:
        connection.send_bytes(_answered(function, payloads.get()))


def _receive(connection: Connection, payloads: "SimpleQueue[bytes]") -> None:
    """Queue what arrives; end this process, at once, when the other end is closed."""
    try:
        while True:
            payloads.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(1)


def _answered(function: Callable[[bytes], bytes], payload: bytes) -> bytes:
    try:
        return _ANSWERED + function(payload)
    except Exception as error:
        failed = {"kind": type(error).__name__, "message": str(error), "trace": traceback.format_exc()}
        return _FAILED + json.dumps(failed).encode()


if __name__ == "__main__":
    module, name, descriptor = sys.argv[1:]
    _serve(getattr(import_module(module), name), Connection(int(descriptor)))
