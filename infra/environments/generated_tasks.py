"""Check of tasks that no environment knows: generated ones, and those of logs whose environment is not here."""

from schemas.records import AgentTask
from schemas.state_text import lines_of


def generated_task_error(task: AgentTask) -> str | None:
    """Return why a task with its first state has no instruction or no well-formed state; None if it has both."""
    try:
        return None if task.instruction and lines_of(task.initial_state) else "nothing is asked for, or it has no state"
    except ValueError as error:
        return str(error)
