"""Base classes of environments that know seeds and text, but no tasks, splits, states or experts."""

from abc import abstractmethod
from functools import lru_cache

from infra.environments.single_games import Game, GameEnvironment
from schemas.errors import InputError
from schemas.records import AgentTask

_FIRST_SEEDS = {"train": 0, "valid": 1_000_000_000, "test": 1_500_000_000}
"""First seed of each split's range. The environment decides whether another seed is another task."""


class SeededGame(Game):
    """Game that was begun from a seed and comes with its instruction."""

    instruction: str
    """Instruction of the game."""

    def actions(self) -> list[str]:
        """Return no actions, because the possible ones are unknown."""
        return []

    def expert(self) -> str:
        """Raise, because there is no expert.

        Raises:
            InputError: Always.
        """
        raise InputError("this environment has no expert to fill the logs: set ingest.path to a log of your own")


class SeededGames(GameEnvironment):
    """Environment whose tasks are seeds; each instruction is read from its game once."""

    @abstractmethod
    def begun(self, seed: int) -> SeededGame:
        """Begin the game of a seed and return it."""

    @lru_cache  # noqa: B019  (an environment lives as long as its process)
    def instruction(self, split: str, family: str, seed: int) -> str:
        """Return the instruction of the seed's game."""
        game = self.begun(_FIRST_SEEDS[split] + seed)
        game.close()
        return game.instruction

    def game(self, task: AgentTask) -> Game:
        """Begin a task's game and return it."""
        return self.begun(_FIRST_SEEDS[task.split] + task.seed)
