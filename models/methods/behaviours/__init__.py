"""Behaviour: which real episodes are collected where there are no logs."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from models.methods.method import Method, OptionsT
from schemas.ports import RealEnvironment
from schemas.records import AgentTask, Trajectory


class Behaviour(Method[OptionsT]):
    """Port of methods that collect the episodes to learn from."""

    @abstractmethod
    def collect(
        self,
        environment: RealEnvironment,
        tasks: Sequence[AgentTask],
        episodes_per_task: int,
        seed: int,
        max_steps: int,
        on_progress: Callable[[int, int], None],
    ) -> list[Trajectory]:
        """Return real episodes of tasks.

        Args:
            environment: Environment to play in.
            tasks: Train tasks.
            episodes_per_task: Number of episodes of each.
            seed: Seed of all randomness.
            max_steps: Maximum number of steps of an episode.
            on_progress: Called after each turn with the number of finished episodes and of all episodes.
        """
