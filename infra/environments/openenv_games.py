"""Any OpenEnv server whose observations and actions are text; each game in a session of its own.

    [environment]
    name = "openenv"
    options = { url = "ws://127.0.0.1:8000" }

Further options, for servers that use other names: action ("action"), the field of an action, and state ("state") and
instruction ("instruction"), the fields of an observation. success_reward (1) is the lowest final reward that counts as
success.
"""

import json
from contextlib import ExitStack, suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from infra.environments.seeded_games import SeededGame, SeededGames
from infra.environments.single_games import Outcome, by_final_reward
from schemas.errors import EnvironmentUnavailable, InputError
from schemas.recipes.environments import PluginRecipe
from schemas.state_text import state_of

_ANSWER_S = 120.0
_FIELDS = {"action": "action", "state": "state", "instruction": "instruction", "success_reward": 1}


class OpenEnvGames(SeededGames):
    """Environment of games on an OpenEnv server."""

    def __init__(self, recipe: PluginRecipe) -> None:
        """Check the options.

        Raises:
            InputError: If the recipe names no server.
        """
        super().__init__(recipe)
        if "url" not in recipe.options:
            raise InputError("environment 'openenv' needs environment.options.url, the address of a server")

    def begun(self, seed: int) -> SeededGame:
        """Begin the game of a seed in a new session and return it.

        Raises:
            EnvironmentUnavailable: If the server cannot be reached, or refuses.
            InputError: If its observations lack the fields that the options name.
        """
        url = self._options["url"]
        with ExitStack() as undone:
            try:
                game = _OpenEnvGame({**_FIELDS, **self._options})
                undone.callback(game.close)
                game.begin(seed)
            except (OSError, ConnectionClosed, _Refused) as error:
                raise EnvironmentUnavailable(f"the OpenEnv server at {url} starts no episode: {error}") from error
            undone.pop_all()
            return game


class _Refused(Exception):
    """Answer of the server that is no usable observation: an error, or an end without a reward."""


class _OpenEnvGame(SeededGame):
    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._server = connect(f"{options['url'].rstrip('/')}/ws", open_timeout=_ANSWER_S)

    def begin(self, seed: int) -> None:
        self._seen = self._asked({"type": "reset", "data": {"seed": seed}})["observation"]
        for field in ("state", "instruction"):
            if self._options[field] not in self._seen:
                raise InputError(
                    f"what the OpenEnv server at {self._options['url']} observes has no {self._options[field]!r}, but "
                    f"{', '.join(sorted(self._seen))}: say in environment.options.{field} what it is called"
                )
        self.instruction = self._seen[self._options["instruction"]]

    def state(self) -> str:
        return state_of(self._seen[self._options["state"]])

    def act(self, action: str) -> Outcome:
        answer = self._asked({"type": "step", "data": {self._options["action"]: action}})
        self._seen = answer["observation"]
        if not answer["done"]:
            return "continue"
        if answer["reward"] is None:
            raise _Refused("the episode ended without a reward")
        return by_final_reward(answer["reward"], self._options["success_reward"])

    def _asked(self, message: dict[str, Any]) -> dict[str, Any]:
        with suppress(ConnectionClosed):  # a message sent before the close can still be read
            self._server.send(json.dumps(message))
        answer = json.loads(self._server.recv(timeout=_ANSWER_S))
        if answer["type"] == "error":
            raise _Refused(answer["data"].get("message", "refused"))
        return answer["data"]

    def close(self) -> None:
        self._server.close()
