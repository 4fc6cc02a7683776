"""Any Gymnasium environment whose observations and actions are text.

    [environment]
    name = "gymnasium"
    options = { id = "package:Name-v0", instruction = "what is to be done" }

Further options: kwargs, passed to gymnasium.make; success_reward (1), the lowest final reward that counts as success.
"""

from typing import Any

from infra.environments.gymnasium_ids import require_packages
from infra.environments.seeded_games import SeededGame, SeededGames
from infra.environments.single_games import Outcome, by_final_reward
from schemas.errors import InputError
from schemas.recipes.environments import PluginRecipe
from schemas.state_text import state_of


class GymnasiumGames(SeededGames):
    """Environment in which each game is a Gymnasium environment of its own."""

    def __init__(self, recipe: PluginRecipe) -> None:
        """Check the options and packages.

        Raises:
            InputError: If an option or a package is missing.
        """
        super().__init__(recipe)
        if missing := {"id", "instruction"} - recipe.options.keys():
            raise InputError(f"environment 'gymnasium' needs environment.options.{' and '.join(sorted(missing))}")
        require_packages("gymnasium", recipe.options["id"])

    def begun(self, seed: int) -> SeededGame:
        """Begin the game of a seed and return it.

        Raises:
            InputError: If Gymnasium does not know the environment, or its observations are not text.
        """
        from gymnasium.error import UnregisteredEnv

        try:
            return _GymnasiumGame(self._options, seed)
        except UnregisteredEnv as error:
            raise InputError(f"environment.options.id: {error}") from error


class _GymnasiumGame(SeededGame):
    def __init__(self, options: dict[str, Any], seed: int) -> None:
        import gymnasium

        self._environment = gymnasium.make(options["id"], **options.get("kwargs", {}))
        self._success_reward = options.get("success_reward", 1)
        self.instruction = options["instruction"]
        self._seen, _ = self._environment.reset(seed=seed)
        if not isinstance(self._seen, str):
            kind = type(self._seen).__name__
            raise InputError(
                f"environment.options.id: {options['id']} observes {kind}, not text: wrap it so that it observes text"
            )

    def state(self) -> str:
        return state_of(self._seen)

    def act(self, action: str) -> Outcome:
        self._seen, reward, terminated, truncated, _ = self._environment.step(action)
        if not (terminated or truncated):
            return "continue"
        outcome = by_final_reward(float(reward), self._success_reward)
        return outcome if terminated else "failure"

    def close(self) -> None:
        self._environment.close()
