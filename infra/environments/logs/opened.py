"""Environment of a recipe that has only logs: its tasks are accepted, and every attempt to play is an error."""

import re
from collections.abc import Mapping
from typing import NoReturn

from infra.environments.generated_tasks import generated_task_error
from schemas.errors import InputError
from schemas.recipes.environments import LogsRecipe
from schemas.records import AgentTask, Step

_IDENTIFIER = re.compile(r"\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])\w{3,}\b")


def open_environment(recipe: LogsRecipe) -> "LoggedEnvironment":
    """Return the environment, which is the same for all logs."""
    return LoggedEnvironment()


class LoggedEnvironment:
    """Environment of logged episodes. All but `names` and `task_error` raise an InputError."""

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Refuse to start episodes."""
        _refuse()

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Refuse to take actions."""
        _refuse()

    def tasks(self, split: str, num_tasks: int, first_seed: int = 0) -> list[AgentTask]:
        """Refuse to create tasks: those of the log come with its episodes."""
        _refuse()

    def expert(self, slot: int) -> str:
        """Refuse to name an action."""
        _refuse()

    def admissible_actions(self, slot: int) -> list[str]:
        """Refuse to list actions."""
        _refuse()

    def near_misses(self, slot: int) -> list[str]:
        """Refuse to list actions."""
        _refuse()

    def names(self, task: AgentTask) -> list[str]:
        """Return the identifiers in a task: words of letters and digits, such as order numbers, which mean nothing."""
        return sorted(set(_IDENTIFIER.findall(f"{task.instruction}\n{task.initial_state}")))

    def task_error(self, task: AgentTask) -> str | None:
        """Return why a task has no instruction or no well-formed first state; None if it has both."""
        return generated_task_error(task)


def _refuse() -> NoReturn:
    raise InputError(
        'environment "logs" has no real environment that could be played: name one in environment.name, '
        "or leave out what needs it"
    )
