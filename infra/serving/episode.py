"""Episode of one player: its task, its progress, and the observations of the player."""

from collections.abc import Sequence

from infra.serving.messages import Observation
from schemas.errors import InputError
from schemas.records import AgentTask, Step


def task_named(tasks: Sequence[AgentTask], task_id: str) -> AgentTask:
    """Return the task with an id.

    Raises:
        InputError: there is no task with this id.
    """
    found = next((task for task in tasks if task.task_id == task_id), None)
    if found is None:
        raise InputError(f"there is no task {task_id!r}: there are {len(tasks)}, the first is {tasks[0].task_id!r}")
    return found


class Episode:
    """Episode from its first state to its end."""

    def __init__(self, task: AgentTask, max_steps: int) -> None:
        """Create an episode without any steps."""
        self.task, self._max_steps = task, max_steps
        self.num_steps = 0
        self.done = False

    def begun(self, state: str) -> Observation:
        """Return the observation before the first action."""
        return Observation(task_id=self.task.task_id, instruction=self.task.instruction, state=state)

    def took(self, step: Step) -> tuple[Observation, float | None]:
        """Return the observation after an action, and its reward; the reward is None if the environment failed."""
        self.num_steps += 1
        truncated = not step.done and not step.failure and self.num_steps == self._max_steps
        self.done = step.done or truncated or step.failure is not None
        seen = self.begun(step.state)
        seen = seen.model_copy(update={"success": step.success, "truncated": truncated, "failure": step.failure})
        return seen, None if step.failure else step.reward
