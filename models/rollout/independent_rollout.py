"""Rollouts on servers: each episode is played in a thread of its own, and none waits for another.

Where episodes share a batch (`rollouts`), a turn lasts as long as its longest action and its longest prediction. Here some
episodes act while others are predicted. A server batches whatever it is asked at a time, and one that holds policy and
experience model computes both in one batch.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import replace
from threading import Event

from models.rollout.rollouts import Rollout, RolloutProgress
from schemas.ports import Environment
from schemas.records import AgentTask, Step, Trajectory

_BETWEEN_REPORTS_S = 0.5


class IndependentRollout(Rollout):
    """Rollout whose engine and environment take calls from several threads; as many episodes run at once as it has slots."""

    def play(
        self, tasks: Sequence[AgentTask], on_progress: Callable[[RolloutProgress], None] = lambda progress: None
    ) -> list[Trajectory]:
        """Play one episode per task; return them in the order of the tasks.

        An error, such as an interrupt, ends all episodes after their turn.
        """
        has_failed = Event()
        with ThreadPoolExecutor(self._options.num_slots) as threads:
            episodes = [
                threads.submit(copy_context().run, self._play_one, slot, task, has_failed)
                for slot, task in enumerate(tasks)
            ]
            try:
                self._await(episodes, on_progress)
            except BaseException:
                has_failed.set()
                threads.shutdown(cancel_futures=True)
                raise
        return [episode.result()[0] for episode in episodes]

    def _play_one(self, slot: int, task: AgentTask, has_failed: Event) -> tuple[Trajectory, Rollout]:
        def go_on(_: RolloutProgress) -> None:
            if has_failed.is_set():
                raise InterruptedError("another episode failed")

        one_slot, options = _OneSlot(self._environment, slot), replace(self._options, num_slots=1)
        rollout = Rollout(self._engine, self._format, one_slot, self._origin, options, self._renamings)
        (episode,) = rollout.play([task], go_on)
        return episode, rollout

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
