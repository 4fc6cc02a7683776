"""Server stack of this home: start it, stop it, print its addresses."""

from dataclasses import asdict
from types import ModuleType

from rich.console import Console

from infra.settings import settings
from infra.stack.layout import USER, Layout
from schemas.errors import InputError


def start_servers(**ports: int | None) -> None:
    """Start the stack unless it is running, and print its addresses.

    Raises:
        InputError: it runs on other ports than these.
    """
    wanted, console, stack = {name: port for name, port in ports.items() if port}, Console(), _stack()
    present = Layout.of(settings().home)
    if stack.is_up(present) and not wanted.items() <= asdict(present.ports).items():
        raise InputError("the stack runs on other ports: `dreamgym down` first")
    layout = Layout.of(settings().home, wanted)
    stack.up(layout, lambda line: console.print(line, highlight=False))
    console.print(f"Prefect {layout.prefect_url}")
    console.print(f"MLflow  {layout.mlflow_url}")
    console.print(
        f"user {USER}; passwords, and all that another process needs to use the stack, are in "
        f"{layout.environment_file}, for your eyes only. Commands in this home use it from now on",
        soft_wrap=True,
    )
    console.print("next    dreamgym run textworld-tiny    or    dreamgym down")


def stop_servers() -> None:
    """Stop the stack."""
    stopped = _stack().down(Layout.of(settings().home))
    Console().print("stopped; everything stored stays, `dreamgym up` goes on with it" if stopped else "nothing runs")


def _stack() -> ModuleType:
    """Return the module of the servers, which needs optional packages."""
    try:
        from infra.stack import up
    except ImportError as error:
        raise InputError(f"no {error.name}: the servers need pip install 'dreamgym[server]'") from error
    return up
