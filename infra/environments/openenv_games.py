"""Any OpenEnv server whose observations and actions are text; each game in a session of its own.

    [environment]
    name = "openenv"
    options = { url = "ws://127.0.0.1:8000" }

Further options, for servers that call things otherwise: action ("action"), state ("state") and instruction ("instruction"),
the fields of an action and of an observation; success_reward (1), from which on a final reward is a success.
"""

import json
from contextlib import ExitStack, suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from infra.environments.seeded_games import SeededGame, SeededGames
from infra.environments.single_games import Outcome
from schemas.errors import EnvironmentUnavailable, InputError
from schemas.recipes.environments import PluginRecipe
from schemas.state_text import state_of

_ANSWER_S = 120.0
_FIELDS = {"action": "action", "state": "state", "instruction": "instruction", "success_reward": 1}


class OpenEnvGames(SeededGames):
    """Games on a server."""

    def __init__(self, recipe: PluginRecipe) -> None:
        """See GameEnvironment.

        Raises:
            InputError: the recipe names no server.
        """
        super().__init__(recipe)
        if "url" not in recipe.options:
            raise InputError("environment 'openenv' needs environment.options.url, the address of a server")

    def begun(self, seed: int) -> SeededGame:
        """See SeededGames.

        Raises:
            EnvironmentUnavailable: the server cannot be reached, or refuses.
            InputError: its observations have not the fields that the options say.
        """
        url = self._options["url"]
        with ExitStack() as undone:
            try:
                game = _OpenEnvGame({**_FIELDS, **self._options})
                undone.callback(game.close)
                game.begin(seed)
            except (OSError, ConnectionClosed, _Refused) as error:
                raise EnvironmentUnavailable(f"the OpenEnv server at {url} begins no episode: {error}") from error
            undone.pop_all()
            return game


class _Refused(Exception):
    """What the server said instead of an observation."""


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
        self.told = self._seen[self._options["instruction"]]

    def state(self) -> str:
        return state_of(self._seen[self._options["state"]])

    def act(self, action: str) -> Outcome:
        answer = self._asked({"type": "step", "data": {self._options["action"]: action}})
        self._seen = answer["observation"]
        if not answer["done"]:
            return "continue"
        if answer["reward"] is None:
            raise _Refused("the episode ended without a reward")
        return "success" if answer["reward"] >= self._options["success_reward"] else "failure"

    def _asked(self, message: dict[str, Any]) -> dict[str, Any]:
        with suppress(ConnectionClosed):  # what it said before it closed is still to be read
            self._server.send(json.dumps(message))
        answer = json.loads(self._server.recv(timeout=_ANSWER_S))
        if answer["type"] == "error":
            raise _Refused(answer["data"].get("message", "refused"))
        return answer["data"]

    def close(self) -> None:
        self._server.close()
