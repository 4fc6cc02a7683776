"""Step advantages of lost groups, from dreams that go on from the states where its episodes parted (VinePPO)."""

from collections import defaultdict
from collections.abc import Sequence

from pydantic import Field

from models.methods.advantages.grpo import Grpo, GrpoOptions
from schemas.records import AgentTask, Trajectory


class VineOptions(GrpoOptions):
    """Options of the vine."""

    num_continuations: int = Field(default=8, ge=1)
    """M: number of dreams from each state; the paper of StepWiser has 16."""
    max_states: int = Field(default=256, ge=1)
    """Maximum number of states per round; those of the first groups count."""


class Vine(Grpo):
    """GRPO's advantage; where all episodes of a group lost, the change of the chance to win at each step.

    A group that lost as a whole then teaches at which of its forks the better action was taken. In the real environment,
    where no dream goes on, it teaches nothing, as in GRPO.

    Source: VinePPO (arXiv 2410.01679), with the values of StepWiser's labels (arXiv 2508.19229): A = Q(s') - Q(s), Q being
        the share of M continuations that win.
    Differs: only states at forks have a value, and the states that follow; elsewhere the advantage is 0.
    """

    Options = VineOptions
    options: VineOptions
    needs_values = True

    @property
    def num_continuations(self) -> int:
        """Number of dreams from each state."""
        return self.options.num_continuations

    def states_to_value(self, groups: Sequence[Sequence[Trajectory]]) -> list[AgentTask]:
        """Return the states at forks of lost groups, and those that follow, each once, as tasks that start there."""
        found: dict[tuple[str, str], AgentTask] = {}
        for group in filter(_is_lost, groups):
            for state in _at_forks(group):
                found.setdefault((group[0].task.task_id, state), group[0].task.snapshot("fork", state))
        return list(found.values())[: self.options.max_states]

    def advantages(self, group: Sequence[Trajectory], rewards: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the advantage of each turn of each episode."""
        if not _is_lost(group):
            return super().advantages(group, rewards)
        return [self._steps(trajectory) for trajectory in group]

    def _steps(self, trajectory: Trajectory) -> list[float]:
        task_id = trajectory.task.task_id
        before = [self.values.get((task_id, turn.state)) for turn in trajectory.turns]
        after = [0.0 if turn.step.done else self.values.get((task_id, turn.step.state)) for turn in trajectory.turns]
        return [0.0 if one is None or other is None else other - one for one, other in zip(before, after, strict=True)]


def _is_lost(group: Sequence[Trajectory]) -> bool:
    return not any(one.success or one.failure for one in group)


def _at_forks(group: Sequence[Trajectory]) -> list[str]:
    """Return the states in which a group's episodes took different actions, and the states that follow."""
    following: dict[str, dict[str, str]] = defaultdict(dict)
    for trajectory in group:
        for turn in trajectory.turns:
            following[turn.state].setdefault(turn.action, "" if turn.step.done else turn.step.state)
    forks = {state: after for state, after in following.items() if len(after) > 1}
    return list(dict.fromkeys(one for state, after in forks.items() for one in (state, *after.values()) if one))
