"""Games of environments that know seeds and texts, and nothing of tasks, splits, states and experts."""

from abc import abstractmethod
from functools import lru_cache

from infra.environments.single_games import Game, GameEnvironment
from schemas.errors import InputError
from schemas.records import AgentTask

_FIRST_SEEDS = {"train": 0, "valid": 1_000_000_000, "test": 1_500_000_000}
"""Splits are ranges of seeds. Whether another seed is another task is for the environment to say."""


class SeededGame(Game):
    """One that was begun by a seed, and was told what is to be done."""

    told: str
    """The instruction."""

    def actions(self) -> list[str]:
        """Nobody knows them."""
        return []

    def expert(self) -> str:
        """There is none.

        Raises:
            InputError: always.
        """
        raise InputError("this environment has no expert to fill the logs: set ingest.path to a log of your own")


class SeededGames(GameEnvironment):
    """Tasks are seeds; what is to be done in one is asked once."""

    @abstractmethod
    def begun(self, seed: int) -> SeededGame:
        """The game of a seed, from its beginning."""

    @lru_cache  # noqa: B019  (an environment lives as long as its process)
    def instruction(self, split: str, family: str, seed: int) -> str:
        """See GameEnvironment."""
        game = self.begun(_FIRST_SEEDS[split] + seed)
        game.close()
        return game.told

    def game(self, task: AgentTask) -> Game:
        """See GameEnvironment."""
        return self.begun(_FIRST_SEEDS[task.split] + task.seed)
