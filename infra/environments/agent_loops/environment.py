"""Environment that is a user's own agent loop.

The loop calls a model until its task is done, as it does in production; here the policy in training is that model. A state
is the conversation that the loop sends, an action is the answer, and the end is what the loop returns.
"""

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property, partial

from infra.environments.agent_loops.episode import LoopEpisode
from infra.environments.agent_loops.proxy import PolicyEndpoint, Proxy
from infra.environments.single_games import Game, GameEnvironment
from schemas.errors import InputError
from schemas.recipes.environments import PluginRecipe
from schemas.records import AgentTask, Step

_TIMEOUT_S = 300.0


class AgentLoops(GameEnvironment):
    """Environment in which each game is a run of an agent; `policy.template = "messages"` shows its messages as they are.

    The recipe's `environment.options.timeout_s` (300) is the time within which an agent must ask or end; `max_steps` is
    its number of requests. An agent that takes longer, or raises, has no outcome: its episode is played again.
    """

    def __init__(self, recipe: PluginRecipe) -> None:
        """Create the environment; the server that its agents call starts with the first of them.

        Raises:
            InputError: options.timeout_s is no positive number.
        """
        super().__init__(recipe)
        self._timeout_s = recipe.options.get("timeout_s", _TIMEOUT_S)
        if not (isinstance(self._timeout_s, int | float) and self._timeout_s > 0):
            raise InputError(f"environment.options.timeout_s is {self._timeout_s!r}: seconds above 0 are expected")

    @cached_property
    def _proxy(self) -> Proxy:
        return Proxy()

    @abstractmethod
    def play(self, task: AgentTask, policy: PolicyEndpoint) -> bool:
        """Run the agent on a task, with the policy as its model; return whether it succeeded. Each runs in a thread."""

    def game(self, task: AgentTask) -> Game:
        """Begin a run of the agent and return it."""
        episode = LoopEpisode(self._timeout_s)
        episode.begin(partial(self.play, task, self._proxy.endpoint(episode)))
        return episode

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Answer all agents, which then work at the same time, and wait for each."""
        for slot, action in actions.items():
            game = self._games[slot]
            if isinstance(game, LoopEpisode):
                game.answer(action)
        return super().step(actions)

    def task_error(self, task: AgentTask) -> str | None:
        """Return why a task is invalid; None if it is fine. No agent is run to see how it begins."""
        return super().task_error(task) if task.generated else self.naming_error(task)
