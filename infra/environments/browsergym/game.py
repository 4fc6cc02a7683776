"""BrowserGym tasks, one after another in a worker process. Playwright and its browser come with BrowserGym."""

from pathlib import Path
from typing import Any

import gymnasium

from infra.environments.browsergym.view import is_action, state_text
from infra.environments.processes import Seen
from infra.environments.single_games import Outcome, by_final_reward


class BrowserGymGame:
    """Player of tasks that Gymnasium knows by name."""

    def __init__(self) -> None:
        """Create a player with no task open yet."""
        self._environment: gymnasium.Env[Any, Any] | None = None

    def reset(self, which: tuple[str, dict[str, Any], float, str | None]) -> Seen:
        """Begin a task.

        Args:
            which: Its name, the arguments of gymnasium.make, the lowest reward that wins, and the folder of files to
                upload.
        """
        name, arguments, self._success_reward, uploads = which
        self._uploads = Path(uploads) if uploads else None
        self.close()
        self._environment = gymnasium.make(name, **arguments)
        self._page, _ = self._environment.reset(seed=0)
        return self._seen()

    def step(self, action: str) -> Seen:
        """Call BrowserGym. A text that is none of its calls, or about nothing on the page, changes nothing."""
        if self._environment is None or not self._is_action(action):
            return self._seen()
        self._page, reward, terminated, truncated, _ = self._environment.step(action)
        if not (terminated or truncated):
            return self._seen()
        return self._seen(by_final_reward(float(reward), self._success_reward))

    def _is_action(self, text: str) -> bool:
        return is_action(text, self._page["axtree_object"], self._uploads)

    def close(self) -> None:
        """Close the browser of the current task."""
        if self._environment:
            self._environment.close()
            self._environment = None

    def _seen(self, outcome: Outcome = "continue") -> Seen:
        page = self._page
        state = state_text(page["url"], page["axtree_object"], page.get("last_action_error", ""))
        return Seen(state, (), outcome=outcome, asked=" ".join(page["goal"].split()))
