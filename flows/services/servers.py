"""Server stack of this home: start it, stop it, print its addresses."""

from dataclasses import asdict
from types import ModuleType

from rich.console import Console

from infra.settings import settings
from infra.stack.layout import USER, Layout
from schemas.errors import InputError


def start_servers(**ports: int | None) -> dict[str, str]:
    """Start the stack unless it is running; return its addresses, its user, and the file with the passwords.

    Raises:
        InputError: it runs on other ports than these.
    """
    wanted, console, stack = {name: port for name, port in ports.items() if port}, Console(stderr=True), _stack()
    present = Layout.of(settings().home)
    if stack.is_up(present) and not wanted.items() <= asdict(present.ports).items():
        raise InputError("the stack runs on other ports: `dreamgym down` first")
    layout = Layout.of(settings().home, wanted)
    stack.up(layout, lambda line: console.print(line, highlight=False))
    return {
        "prefect": layout.prefect_url,
        "mlflow": layout.mlflow_url,
        "user": USER,
        "environment_file": str(layout.environment_file),
    }


def print_addresses(addresses: dict[str, str]) -> None:
    """Print the result of `start_servers`, and what to do next."""
    console = Console()
    console.print(f"Prefect {addresses['prefect']}")
    console.print(f"MLflow  {addresses['mlflow']}")
    console.print(
        f"user {addresses['user']}; passwords, and all that another process needs to use the stack, are in "
        f"{addresses['environment_file']}, for your eyes only. Commands in this home use it from now on",
        soft_wrap=True,
    )
    console.print("next    dreamgym run textworld-tiny    or    dreamgym down")


def stop_servers() -> bool:
    """Stop the stack; return whether it was running."""
    return bool(_stack().down(Layout.of(settings().home)))


def _stack() -> ModuleType:
    """Return the module of the servers, which needs optional packages."""
    try:
        from infra.stack import up
    except ImportError as error:
        raise InputError(f"no {error.name}: the servers need pip install 'dreamgym[server]'") from error
    return up
