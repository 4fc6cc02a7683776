"""Server stack in a test: its home, a short path that the database's user may enter, free ports, Prefect's answers."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from infra.stack.layout import USER, Layout
from tests.command_line import dreamgym
from tests.free_ports import free_ports

TEMPORARY = "temporary"


@contextmanager
def stack_home() -> Iterator[Path]:
    """Yield a folder directly under the temporary one; pytest's own are closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix="dreamgym-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_stack(**settings: str) -> Iterator[Layout]:
    """Yield a running stack, whose worker has these settings. Temporary files lie in its home."""
    with stack_home() as home:
        (home / TEMPORARY).mkdir()
        told = {"TMPDIR": str(home / TEMPORARY), **settings}
        started = dreamgym(home, "up", *port_options(), **told)
        try:
            assert started.returncode == 0, started.stderr
            yield Layout.of(home)
        finally:
            dreamgym(home, "down")


def ask_prefect(layout: Layout, method: str, path: str, rows: list[dict] | None = None, **fields) -> dict | list:
    """Return the answer of Prefect's API; loading certificates, of which it needs none, would take longer than that."""
    url, login = f"{layout.prefect_url}/api/{path}", (USER, layout.passwords["prefect"])
    answer = httpx.request(method, url, auth=login, json=rows or fields, timeout=60, verify=False)
    answer.raise_for_status()
    return answer.json() if answer.content else {}


def port_options() -> list[str]:
    """Return options with a port for each server; the object server uses the seven above its own, too."""
    servers = ("prefect", "mlflow", "postgres", "s3")
    ports = zip(servers, free_ports(len(servers), in_a_row=8), strict=True)
    return [part for name, port in ports for part in (f"--{name}-port", str(port))]
