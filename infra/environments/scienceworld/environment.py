"""ScienceWorld as a vectorised environment, with games played in worker processes."""

from infra.environments.opened_games import OpenedGames
from infra.environments.processes import Game
from infra.environments.scienceworld.plan import about_others
from schemas.recipes.environments import ScienceworldRecipe
from schemas.records import AgentTask

_GAMES_PER_JAVA = 200
_EASY = "easy"
_ANIMALS = ("blue jay", "butterfly", "crocodile", "dove", "frog", "turtle", "wolf")
"""Animals of its train games; valid and test games have others, too.

The word `egg` or `baby` next to a name shows that the animal is alive.
"""
_NAMES = (*_ANIMALS, *(f"flower pot {number}" for number in range(1, 10)))


def new_game() -> Game:
    """Return a new game; the worker process that calls this has its own Java machine."""
    from infra.environments.scienceworld.game import ScienceworldGame

    return ScienceworldGame()


class ScienceworldEnvironment(OpenedGames):
    """ScienceWorld's rooms as states; success is its full score. The expert follows ScienceWorld's own solutions.

    Differs: ScienceWorld also scores parts of a task; here, as in the paper, only the whole task is rewarded.
    """

    def __init__(self, recipe: ScienceworldRecipe) -> None:
        """Create an environment with the recipe's tasks as families; valid tasks are its split `dev`."""
        super().__init__(new_game, recipe.families, games_per_process=_GAMES_PER_JAVA)
        self._simplifications = _EASY if recipe.easy else ""

    def which(self, task: AgentTask) -> tuple[str, str, int, str]:
        """Return the task's name, split and number, and its simplifications."""
        return task.family, task.split, task.seed, self._simplifications

    def names(self, task: AgentTask) -> list[str]:
        """Return animals and flower pots, the same for all tasks."""
        return list(_NAMES)

    def admissible_actions(self, slot: int) -> list[str]:
        """Return a few of hundreds of accepted actions; some may be refused after all."""
        return list(self._seen[slot].admissible)

    def near_misses(self, slot: int) -> list[str]:
        """Return actions that are right at another time, or about things that may not be here."""
        seen = self._seen[slot]
        return [*seen.planned, *about_others(seen.expert, _NAMES)]
