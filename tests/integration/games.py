"""Games for tests of processes; a process that plays them imports this module."""

import os
import time
from typing import Any

from infra.environments.opened_games import OpenedGames
from infra.environments.processes import Seen
from infra.environments.single_games import Outcome


class Counting:
    """Game that counts its steps, shows its process id, and fails on request."""

    def reset(self, which: str) -> Seen:
        self.name, self.num_steps = str(which), 0
        return self._seen()

    def step(self, action: str) -> Seen:
        if action == "die":
            os._exit(1)
        if action == "hang":
            time.sleep(3600)
        if action == "raise":
            raise RuntimeError("as it was told")
        self.num_steps += 1
        return self._seen("success" if action == "win" else "continue")

    def close(self) -> None:
        """Do nothing, since the game holds nothing."""

    def _seen(self, outcome: Outcome = "continue") -> Seen:
        return Seen(f"{self.name} {self.num_steps}", (str(os.getpid()),), outcome=outcome)


class NeverThere:
    """Factory of games that hangs the process that unpickles it."""

    def __call__(self) -> Counting:
        return Counting()

    def __reduce__(self) -> tuple[Any, ...]:
        return time.sleep, (3600,)


class CountingGames(OpenedGames):
    """Counting games of one family."""

    def which(self, task):
        return (task.task_id,)
