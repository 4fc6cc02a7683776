"""The door to ScienceWorld: reset and step over a vector of games, which are played in processes of their own."""

from infra.environments.opened_games import OpenedGames
from infra.environments.processes import Game
from infra.environments.scienceworld.plan import about_others
from schemas.recipes.environments import ScienceworldRecipe
from schemas.records import AgentTask

_GAMES_PER_JAVA = 200
_EASY = "easy"
_ANIMALS = ("blue jay", "butterfly", "crocodile", "dove", "frog", "turtle", "wolf")
"""Of its train games; valid and test have others, too. That they live is told by `egg` or `baby` beside their names."""
_NAMES = (*_ANIMALS, *(f"flower pot {number}" for number in range(1, 10)))


def new_game() -> Game:
    """In a process of its own, which has a Java machine."""
    from infra.environments.scienceworld.game import ScienceworldGame

    return ScienceworldGame()


class ScienceworldEnvironment(OpenedGames):
    """ScienceWorld's rooms as states; success is its full score. Its experts follow its own solutions.

    Differs: ScienceWorld scores parts of a task, too, and here, as in the paper, only the whole is a reward.
    """

    def __init__(self, recipe: ScienceworldRecipe) -> None:
        """An environment of some of its tasks, which are our families; valid tasks are those of its split `dev`."""
        super().__init__(new_game, recipe.families, games_per_process=_GAMES_PER_JAVA)
        self._simplifications = _EASY if recipe.easy else ""

    def which(self, task: AgentTask) -> tuple[str, str, int, str]:
        """Its name, split and number, and how it is made easier."""
        return task.family, task.split, task.seed, self._simplifications

    def names(self, task: AgentTask) -> list[str]:
        """Animals and flower pots, the same for all tasks."""
        return list(_NAMES)

    def admissible_actions(self, slot: int) -> list[str]:
        """Some, of hundreds; a few it refuses after all."""
        return list(self._seen[slot].admissible)

    def near_misses(self, slot: int) -> list[str]:
        """What would be right at another time, or with what may not be here."""
        seen = self._seen[slot]
        return [*seen.planned, *about_others(seen.expert, _NAMES)]
