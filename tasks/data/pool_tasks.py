"""Pool the agent tasks that the experience covers, each with the first state that was observed."""

from schemas.records import AgentTask, Reference
from tasks.running.artifacts import get_trajectories, put_tasks
from tasks.running.versioned import versioned_task


@versioned_task
def pool_tasks(experience: list[Reference]) -> Reference:
    """Store one task per task id, in the order of the logs."""
    return put_tasks(tasks_in(experience))


def tasks_in(experience: list[Reference]) -> list[AgentTask]:
    """Return one task per task id, leaving out episodes that failed, which do not show how a task begins."""
    tasks = {t.task.task_id: t.task_as_it_began for t in get_trajectories(*experience) if not t.failure}
    return list(tasks.values())
