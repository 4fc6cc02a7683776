"""Starts from states of logged wins, ever further from the end: a curriculum over the horizon."""

import math
import random
from collections.abc import Sequence

from pydantic import Field

from models.methods.curricula.reward_entropy import RewardEntropy, RewardEntropyOptions
from models.rollout.wins import shortest_successes
from schemas.records import AgentTask, Trajectory


class SnapshotsOptions(RewardEntropyOptions):
    """Options of the snapshot starts."""

    share: float = Field(default=0.3, gt=0, le=1)
    """q: share of the drawn tasks that begin in the middle of a logged win."""
    first_horizon: int = Field(default=1, ge=1)
    """Maximum number of turns before the win's end in the first round."""
    last_horizon: int = Field(default=10, ge=1)
    """Maximum number of turns before the win's end in the last round."""


class Snapshots(RewardEntropy):
    """Tasks drawn by reward entropy, some of which begin shortly before the end of a logged win.

    Where whole episodes are seldom won, the last turns of one still teach something; and errors of a dream add up over
    fewer steps.

    Source: growing horizons as in AgentGym-RL (arXiv 2509.08755), by states instead of step limits.
    Differs: a snapshot shows the policy none of the actions before it, and is dreamt to its end.
    """

    Options = SnapshotsOptions
    options: SnapshotsOptions
    needs_wins = True

    def starts(
        self, tasks: Sequence[AgentTask], wins: Sequence[Trajectory], share_done: float, rng: random.Random
    ) -> list[AgentTask]:
        """Return the tasks, a share of them as snapshots of the shortest win of each."""
        shortest = {win.task.task_id: win for win in shortest_successes(wins)}
        horizon = self.horizon(share_done)
        return [self._start(task, shortest.get(task.task_id), horizon, rng) for task in tasks]

    def horizon(self, share_done: float) -> int:
        """Return the maximum number of turns before the end, given the share of the rounds that are done."""
        first, last = self.options.first_horizon, self.options.last_horizon
        return math.ceil(first + (last - first) * share_done)

    def _start(self, task: AgentTask, win: Trajectory | None, horizon: int, rng: random.Random) -> AgentTask:
        if win is None or len(win.turns) < 2 or rng.random() >= self.options.share:
            return task
        return snapshot(win, rng.randint(1, min(horizon, len(win.turns) - 1)))


def snapshot(win: Trajectory, num_turns: int) -> AgentTask:
    """Return the task of an episode as it was some turns before the end."""
    return win.task.snapshot(str(num_turns), win.turns[-num_turns].state)
