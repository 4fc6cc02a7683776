"""Environment for one player in this process: text in, a step out."""

from collections.abc import Sequence

from infra.serving.episode import Episode, task_named
from schemas.errors import InputError
from schemas.ports import Environment
from schemas.records import AgentTask, Step

_SLOT = 0


class SinglePlayerEnvironment:
    """View of an environment, real or dreamt, with one episode at a time."""

    def __init__(self, environment: Environment, tasks: Sequence[AgentTask], max_steps: int) -> None:
        """Wrap an environment; no episode is started yet.

        Args:
            environment: Environment that answers.
            tasks: Agent tasks that can be played.
            max_steps: Maximum number of steps per episode.
        """
        self._environment, self._max_steps = environment, max_steps
        self.tasks = tuple(tasks)
        self._episode: Episode | None = None

    def reset(self, task: AgentTask | str | None = None) -> str:
        """Start an episode and return its first state.

        Args:
            task: Task to play, or its id; None: the first of `tasks`.

        Raises:
            InputError: there is no task with this id, or the task has no first state to dream from.
        """
        named = task_named(self.tasks, task) if isinstance(task, str) else task
        episode = Episode(named or self.tasks[0], self._max_steps)
        self._episode = None
        state = self._environment.reset({_SLOT: episode.task})[_SLOT]
        self._episode = episode
        return state

    def step(self, action: str) -> Step:
        """Take an action and return the step. A step with a `failure` is neither won nor lost.

        Raises:
            InputError: no episode is in progress.
        """
        if self.done:
            raise InputError("no episode is running: reset first")
        step = self._environment.step({_SLOT: action})[_SLOT]
        self._begun.took(step)
        return step

    @property
    def task(self) -> AgentTask:
        """Task of the present episode.

        Raises:
            InputError: no episode was started.
        """
        return self._begun.task

    @property
    def done(self) -> bool:
        """True if the episode is over, also by its limit of steps, or if none was started."""
        return self._episode is None or self._episode.done

    @property
    def _begun(self) -> Episode:
        if self._episode is None:
            raise InputError("no episode was started: reset first")
        return self._episode
