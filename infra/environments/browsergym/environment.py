"""The door to BrowserGym's benchmarks, whose websites the user runs.

    [environment]
    name = "browsergym"
    families = ["webarena"]
    options = { id = "browsergym.webarena:browsergym/webarena.{number}", first = { train = 0, valid = 600, test = 700 } }

Splits are runs of a benchmark's numbers, each up to where the next begins. Further options: kwargs, for gymnasium.make;
success_reward (1), from which on a reward is a success; uploads, a folder whose files upload_file may take (none without it).
BrowserGym itself is for the user to install.
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
    """In a process of its own, where every game has browsers of its own."""
    from infra.environments.browsergym.game import BrowserGymGame

    return BrowserGymGame()


class BrowserGymEnvironment(OpenedGames):
    """Pages as states; success is the full reward. It has no expert, so logs are for the user to bring."""

    def __init__(self, recipe: PluginRecipe) -> None:
        """An environment of a benchmark's tasks, which are known by number.

        Raises:
            InputError: an option or a package is missing.
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
        """Its name, for gymnasium.make, and what a game has to know of our options."""
        name = self._options["id"].format(number=self._number(task), family=task.family)
        options = self._options
        return name, options.get("kwargs", {}), options.get("success_reward", 1.0), options.get("uploads")

    def _number(self, task: AgentTask) -> int:
        """Within its benchmark.

        Raises:
            InputError: it is another split's.
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
        """There is none.

        Raises:
            InputError: always.
        """
        raise InputError("this environment has no expert to fill the logs: set ingest.path to a log of your own")

    def admissible_actions(self, slot: int) -> list[str]:
        """A click on everything."""
        ids = (name[1:].partition("]")[0] for name in lines_of(self._state(slot)) if name.startswith("["))
        return [f"click('{one}')" for one in ids]

    def near_misses(self, slot: int) -> list[str]:
        """To move, and to go back."""
        return ["noop()", "go_back()", "scroll(0, 100)"]

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn: what is acted on, and what came of it."""
        return [[_explain(turn) for turn in one.turns] for one in trajectories]


def _explain(turn: Turn) -> str:
    lines = lines_of(turn.state)
    about = [f"{name}: {value}" for name, value in lines.items() if f"'{name[1:].partition(']')[0]}'" in turn.action]
    return ". ".join([*(about or ["nothing on the page"]), verdict(turn)]) + "."
