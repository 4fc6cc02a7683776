"""BrowserGym's benchmarks as a vectorised environment; the user runs their websites.

    [environment]
    name = "browsergym"
    families = ["webarena"]

    [environment.options]
    id = "browsergym.webarena:browsergym/webarena.{number}"
    first = { train = 0, valid = 600, test = 700 }

Each split is a range of a benchmark's numbers that ends where the next begins. Further options: kwargs, passed to
gymnasium.make; success_reward (1), the lowest reward that counts as success; uploads, a folder whose files upload_file
may take (none without it). The user has to install BrowserGym.
"""

from collections.abc import Sequence
from typing import Any

from infra.environments.gymnasium_ids import require_packages
from infra.environments.opened_games import OpenedGames
from infra.environments.processes import Game
from infra.environments.verdicts import verdict
from schemas.errors import InputError
from schemas.recipes.environments import PluginRecipe
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_TASKS_PER_PROCESS, _OPENED_AT_ONCE = 50, 4


def new_game() -> Game:
    """Return a new game; called in a worker process, where every game has its own browser."""
    from infra.environments.browsergym.game import BrowserGymGame

    return BrowserGymGame()


class BrowserGymEnvironment(OpenedGames):
    """Environment with web pages as states; success is the full reward.

    It has no expert, so the user has to bring logs.
    """

    def __init__(self, recipe: PluginRecipe) -> None:
        """Create an environment of a benchmark's tasks, which are known by number.

        Raises:
            InputError: If an option or a package is missing.
        """
        super().__init__(new_game, recipe.families, games_per_process=_TASKS_PER_PROCESS, at_once=_OPENED_AT_ONCE)
        self._options = recipe.options
        if missing := {"id", "first"} - recipe.options.keys():
            raise InputError(f"environment 'browsergym' needs environment.options.{' and '.join(sorted(missing))}")
        if missing := {"train", "valid", "test"} - recipe.options["first"].keys():
            raise InputError(
                f"environment.options.first does not say where {' and '.join(sorted(missing))} tasks begin"
            )
        require_packages("browsergym", recipe.options["id"])

    def which(self, task: AgentTask) -> tuple[str, dict[str, Any], float, str | None]:
        """Return the task's name for gymnasium.make, and the options that its game needs."""
        name = self._options["id"].format(number=self._number(task), family=task.family)
        options = self._options
        return name, options.get("kwargs", {}), options.get("success_reward", 1.0), options.get("uploads")

    def _number(self, task: AgentTask) -> int:
        """Return the number of a task within its benchmark.

        Raises:
            InputError: If the number belongs to another split.
        """
        first = self._options["first"]
        number = first[task.split] + task.seed
        others = first.keys() - {task.split}
        if taken := [split for split in sorted(others) if first[task.split] <= first[split] <= number]:
            raise InputError(
                f"{task.split} task {task.seed} would be number {number}, which is one of {taken[0]}: lower "
                f"environment.num_{task.split}_tasks, or move environment.options.first.{taken[0]}"
            )
        return number

    def expert(self, slot: int) -> str:
        """Raise, because there is no expert.

        Raises:
            InputError: Always.
        """
        raise InputError("this environment has no expert to fill the logs: set ingest.path to a log of your own")

    def admissible_actions(self, slot: int) -> list[str]:
        """Return a click on each element of the page."""
        ids = (name[1:].partition("]")[0] for name in lines_of(self._state(slot)) if name.startswith("["))
        return [f"click('{one}')" for one in ids]

    def near_misses(self, slot: int) -> list[str]:
        """Return calls that wait, go back and scroll."""
        return ["noop()", "go_back()", "scroll(0, 100)"]

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """Return one trace per turn: the elements of the action, and its outcome."""
        return [[_explain(turn) for turn in one.turns] for one in trajectories]


def _explain(turn: Turn) -> str:
    lines = lines_of(turn.state)
    about = [f"{name}: {value}" for name, value in lines.items() if f"'{name[1:].partition(']')[0]}'" in turn.action]
    return ". ".join([*(about or ["nothing on the page"]), verdict(turn)]) + "."
