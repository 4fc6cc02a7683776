"""Logs of an expert, of one that errs, and of one that mostly errs."""

from collections.abc import Callable, Sequence

from pydantic import Field

from models.methods.behaviours import Behaviour
from models.rollout.behaviour_policies import collect
from schemas.ports import RealEnvironment
from schemas.recipes.section import Section, Share
from schemas.records import AgentTask, Trajectory


class NoisyExpertOptions(Section):
    """Options of the noisy expert."""

    noise: tuple[Share, ...] = Field(default=(0.0, 0.15, 0.25, 0.5), min_length=1)
    """Error rates, taken in turn by the episodes of a task: 0 is the expert, 1 is random."""


class NoisyExpert(Behaviour[NoisyExpertOptions]):
    """Episodes of the environment's expert, with errors at several rates."""

    Options = NoisyExpertOptions

    def collect(
        self,
        environment: RealEnvironment,
        tasks: Sequence[AgentTask],
        episodes_per_task: int,
        seed: int,
        max_steps: int,
        on_progress: Callable[[int, int], None],
    ) -> list[Trajectory]:
        """Return real episodes; the first of each task has the first error rate, and so on."""
        rates = self.options.noise
        noise = [rates[number % len(rates)] for number in range(episodes_per_task) for _ in tasks]
        return collect(environment, [*tasks] * episodes_per_task, noise, seed, max_steps, on_progress)
