"""Rollouts on servers: each episode is played in a thread of its own, and none waits for another.

Where episodes share a batch (`rollouts`), a turn lasts as long as its longest action and its longest prediction. Here some
episodes act while others are predicted. A server batches whatever it is asked at a time, and one that holds policy and
experience model computes both in one batch.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import replace
from threading import Event
from types import MappingProxyType

from models.rollout.rollouts import Rollout, RolloutOptions, RolloutProgress
from models.text.policies.policy_format import PolicyFormat
from models.text.renaming import EntityRenaming
from schemas.ports import Engine, Environment
from schemas.records import AgentTask, Origin, Step, Trajectory

_BETWEEN_REPORTS_S = 0.5


class IndependentRollout:
    """Rollout whose engine and environment take calls from several threads; see `Rollout`."""

    def __init__(
        self,
        engine: Engine,
        format: PolicyFormat,
        environment: Environment,
        origin: Origin,
        options: RolloutOptions,
        renamings: Mapping[str, EntityRenaming] = MappingProxyType({}),
    ) -> None:
        """Create a rollout; see `Rollout`. As many episodes run at once as there are slots."""
        self._num_at_once = options.num_slots
        self._environment, options = environment, replace(options, num_slots=1)
        self._rollout_in = lambda one_slot: Rollout(engine, format, one_slot, origin, options, renamings)
        self._ended = Event()
        self.num_tokens = 0
        self.limits = Counter[str]()

    def play(
        self, tasks: Sequence[AgentTask], on_progress: Callable[[RolloutProgress], None] = lambda progress: None
    ) -> list[Trajectory]:
        """Play one episode per task; return them in the order of the tasks.

        An error, such as an interrupt, ends all episodes after their turn.
        """
        with ThreadPoolExecutor(self._num_at_once) as threads:
            episodes = [
                threads.submit(copy_context().run, self._play_one, slot, task) for slot, task in enumerate(tasks)
            ]
            try:
                self._await(episodes, on_progress)
            except BaseException:
                self._ended.set()
                threads.shutdown(cancel_futures=True)
                raise
        return [episode.result()[0] for episode in episodes]

    def _play_one(self, slot: int, task: AgentTask) -> tuple[Trajectory, Rollout]:
        rollout = self._rollout_in(_OneSlot(self._environment, slot))
        (episode,) = rollout.play([task], lambda _: self._go_on())
        return episode, rollout

    def _go_on(self) -> None:
        if self._ended.is_set():
            raise InterruptedError("another episode failed")

    def _await(
        self, episodes: "Sequence[Future[tuple[Trajectory, Rollout]]]", on_progress: Callable[[RolloutProgress], None]
    ) -> None:
        """Wait for all episodes, and report those that have ended."""
        running, num_successes = set(episodes), 0
        while running:
            done, running = wait(running, _BETWEEN_REPORTS_S, FIRST_COMPLETED)
            for episode, rollout in (one.result() for one in done):
                num_successes += episode.success
                self.num_tokens += rollout.num_tokens
                self.limits += rollout.limits
            num_done = len(episodes) - len(running)
            on_progress(RolloutProgress(num_done, len(episodes), num_successes, self.num_tokens))


class _OneSlot:
    """Slot of an environment, as an environment that has the slot 0 only."""

    def __init__(self, environment: Environment, slot: int) -> None:
        self._environment, self._slot = environment, slot

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        return {0: self._environment.reset({self._slot: tasks[0]})[self._slot]}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        return {0: self._environment.step({self._slot: actions[0]})[self._slot]} if actions else {}
