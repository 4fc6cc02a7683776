"""`dreamgym init`: a recipe from logs, an environment or both, and what to run next."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.prompt import Prompt

from flows.logs.draft_recipe import Asked, drafted
from flows.logs.held_out_shares import held_out_shares
from flows.logs.ingest_logs import converted_logs
from flows.logs.log_sizes import sizes_of
from flows.planning.load_recipe import SHIPPED, load_recipe
from schemas.errors import DataError, InputError
from schemas.recipes.data import IngestRecipe
from schemas.recipes.environments import BUILT_IN, entry_point
from tasks.planning.logged import logged_episodes

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")


@dataclass(frozen=True, slots=True)
class Wishes:
    """Arguments of `dreamgym init`, as far as they are given."""

    name: str
    logs: Path | None
    environment: str
    model: str
    revision: str
    success: bool | None
    """Outcome of all logged episodes, if the logs do not say it."""


def init_recipe(wishes: Wishes, console: Console, *, may_ask: bool) -> Path:
    """Write a recipe to NAME.toml in this folder, and return its path.

    Args:
        wishes: Arguments.
        console: Where progress and questions go.
        may_ask: A person is at a terminal to answer what the arguments leave open.

    Raises:
        InputError: the name is taken or invalid, nothing is given to draft from, or the environment is not known.
        DataError: the logs are not understood.
    """
    file = Path(f"{wishes.name}.toml")
    if not _NAME.fullmatch(wishes.name):
        raise InputError(f"{wishes.name!r} is no name of a recipe: lower-case letters, digits, dots and dashes")
    if file.exists():
        raise InputError(f"{file} is there already: choose another name, or remove it")
    logs, environment = wishes.logs, wishes.environment
    if not (logs or environment):
        if not may_ask:
            raise InputError("give --logs, --environment, or both: a recipe is drafted from them")
        logs, environment = _asked(console)
    if environment == "logs" and logs is None:
        raise InputError('environment "logs" needs --logs')
    _require_known(environment)
    text = _drafted(wishes, logs, environment, file, console, may_ask=may_ask)
    with file.open("x") as written:
        written.write(text)
    load_recipe(str(file))
    return file


def _asked(console: Console) -> tuple[Path | None, str]:
    """Return a log and the name of an environment, as a person answers."""
    logs = Prompt.ask("Logs of your agent, a file or a folder (empty: none)", default="", console=console)
    question = "Environment that can be played (empty: only the logs)" if logs else "Environment"
    environment = Prompt.ask(question, default="" if logs else BUILT_IN[0], console=console)
    return Path(logs) if logs else None, environment


def _require_known(environment: str) -> None:
    """Refuse an environment that no package provides.

    Raises:
        InputError: it is not known.
    """
    if environment and environment not in BUILT_IN:
        try:
            entry_point(environment)
        except ValueError as error:
            raise InputError(str(error)) from None


def _drafted(
    wishes: Wishes, logs: Path | None, environment: str, file: Path, console: Console, *, may_ask: bool
) -> str:
    if logs is None and not wishes.model and (shipped := _shipped_for(environment)):
        text = shipped.read_text()
        return text.replace(f'name = "{shipped.stem}"', f'name = "{wishes.name}"', 1)
    folder = converted_logs(logs, wishes.success, console, may_ask=may_ask).resolve() if logs else None
    episodes = logged_episodes(IngestRecipe(path=str(folder))) if folder else []
    sizes = sizes_of(episodes) if episodes else None
    if sizes and not (sizes.num_successes or wishes.model):
        raise DataError(
            f"{logs}: no logged episode succeeded, so there is nothing to clone: begin from a model (--model)"
        )
    asked = Asked(wishes.name, environment or "logs", folder, sizes, wishes.model, wishes.revision)
    return drafted(replace(asked, held_out=held_out_shares(episodes)) if asked.is_logs_alone else asked, file)


def _shipped_for(environment: str) -> Path | None:
    """Return the shipped recipe of a small network for an environment; None if there is none."""
    small = sorted(SHIPPED.glob("*-tiny.toml"))
    return next((path for path in small if load_recipe(str(path)).environment.name == environment), None)
