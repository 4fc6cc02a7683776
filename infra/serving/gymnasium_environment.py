"""Gymnasium environment of text, for one player in this process."""

import math
import random
import string
from typing import Any

import gymnasium
from gymnasium.spaces import Space

from infra.serving.messages import MAX_ACTION_CHARACTERS
from infra.serving.single_player import SinglePlayerEnvironment

_MAX_STATE_CHARACTERS = 1_000_000


class AnyText(Space[str]):
    """Space of texts with any characters up to a length; Gymnasium's own `Text` is limited to a given character set."""

    def __init__(self, max_length: int) -> None:
        """Create the space of all texts with at most `max_length` characters."""
        super().__init__(dtype=str)
        self.max_length = max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw eight random letters."""
        return "".join(random.Random(int(self.np_random.integers(2**31))).choices(string.ascii_lowercase, k=8))

    def contains(self, x: Any) -> bool:
        """Return True if `x` is a text within the length."""
        return isinstance(x, str) and len(x) <= self.max_length

    @property
    def is_np_flattenable(self) -> bool:
        """Always False."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash(self.max_length)


class TextEnvironment(gymnasium.Env[str, str]):
    """Gymnasium view of an environment, one episode at a time.

    An observation is the task's instruction, an empty line, and the state; info names the task. `reset(seed=...)` draws
    a task by that seed, `reset(options={"task_id": ...})` selects one by id. If the environment fails, the episode ends
    truncated with a reward of nan and info["failure"]: it is not a loss, so leave it out of training.
    """

    def __init__(self, player: SinglePlayerEnvironment) -> None:
        """Wrap an environment; no episode is started yet."""
        self._player = player
        self.observation_space = AnyText(_MAX_STATE_CHARACTERS)
        self.action_space = AnyText(MAX_ACTION_CHARACTERS)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; see Gymnasium.

        Raises:
            InputError: there is no task with the given id.
        """
        super().reset(seed=seed)
        tasks = self._player.tasks
        drawn = tasks[int(self.np_random.integers(len(tasks)))]
        state = self._player.reset((options or {}).get("task_id") or drawn)
        return self._shown(state), {"task_id": self._player.task.task_id}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take an action; see Gymnasium.

        Raises:
            InputError: no episode is in progress.
        """
        step = self._player.step(action)
        ended = step.done and step.failure is None
        info = {"task_id": self._player.task.task_id, "success": step.success, "failure": step.failure}
        reward = math.nan if step.failure else step.reward
        return self._shown(step.state), reward, ended, self._player.done and not ended, info

    def _shown(self, state: str) -> str:
        return f"{self._player.task.instruction}\n\n{state}"
