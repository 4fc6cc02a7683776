"""Start and stop of the stack."""

import socket
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from infra.files.private_files import write_privately
from infra.stack import object_server, postgres, programs, supervision
from infra.stack.layout import HOST, Layout
from infra.stack.programs import Program
from schemas.errors import DreamGymError, InputError

_PATIENCE_S = 120


def up(layout: Layout, say: Callable[[str], None]) -> None:
    """Start the servers that are not running, and wait until all are healthy.

    Raises:
        InputError: a program is not installed, a port is taken, or the folder cannot be used.
        DreamGymError: a server did not become healthy; the message names its log.
    """
    database, objects, worker = programs.database(layout), programs.objects(layout), programs.worker(layout)
    servers = [programs.prefect(layout), programs.mlflow(layout)]
    if not is_up(layout):
        _prepare(layout)
        supervision.write_configuration(layout, [database, objects, *servers, worker])
        supervision.start(layout)
    with ThreadPoolExecutor() as both:
        waiting = [
            both.submit(_start_servers, layout, database, servers, say),
            both.submit(_start, layout, [objects], say),
        ]
        for one in waiting:
            one.result()
    _start(layout, [worker], say)
    text = "".join(f"{name}={value}\n" for name, value in layout.client_environment().items())
    write_privately(layout.environment_file, text)


def is_up(layout: Layout) -> bool:
    """Return True if the stack was started and not stopped since."""
    return supervision.is_running(layout)


def down(layout: Layout) -> bool:
    """Stop everything that `up` started; return False if it was not running. Stored data stays."""
    if not is_up(layout):
        return False
    supervision.stop(layout)
    return True


def _prepare(layout: Layout) -> None:
    object_server.check_installed()
    wanted = {port: name for name, port in asdict(layout.ports).items()}
    for port, name in {**dict.fromkeys(object_server.ports(layout), "s3"), **wanted}.items():
        _require_free(port, name)
    layout.logs.mkdir(parents=True, exist_ok=True)
    object_server.write_configuration(layout)
    postgres.ensure_cluster(layout)


def _require_free(port: int, name: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise InputError(f"port {port} for {name} is taken: choose another with --{name}-port") from error


def _start_servers(layout: Layout, database: Program, servers: list[Program], say: Callable[[str], None]) -> None:
    _start(layout, [database], say)
    postgres.ensure_databases(layout)
    _start(layout, servers, say)


def _start(layout: Layout, started: Iterable[Program], say: Callable[[str], None]) -> None:
    """Start programs together and wait until each is healthy."""
    began = time.monotonic()
    for program in started:
        supervision.start_program(layout, program.name)
    for program in started:
        while not program.healthy():
            if supervision.states(layout)[program.name] == "FATAL" or time.monotonic() - began > _PATIENCE_S:
                raise DreamGymError(f"{program.name} is not healthy; see {layout.logs / program.name}.log")
            time.sleep(0.1)
        say(f"{program.name} is healthy after {time.monotonic() - began:.1f} s")
