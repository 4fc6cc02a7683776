"""Template for an agent of your own: copy it into your package and put your agent's loop into `play`.

This agent plays the game of infra/environments/template.py in a conversation; its files and tools would be its own.
"""

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from infra.environments.agent_loops.environment import AgentLoops
from infra.environments.agent_loops.proxy import PolicyEndpoint
from infra.environments.template import Treasures
from schemas.recipes.environments import PluginRecipe
from schemas.records import AgentTask

_ROLE = (
    "You look for a treasure in boxes. Say `open BOX`, `break BOX` or `take treasure`, and nothing else. Your task: "
)


class TreasureAgent(AgentLoops):
    """Agent that looks for treasures; the name of a family is its number of boxes."""

    def __init__(self, recipe: PluginRecipe) -> None:
        """Create the agent with the boxes that it opens."""
        super().__init__(recipe)
        self._treasures = Treasures(recipe)

    def instruction(self, split: str, family: str, seed: int) -> str:
        """Return an instruction that no other split or seed has."""
        return self._treasures.instruction(split, family, seed)

    def play(self, task: AgentTask, policy: PolicyEndpoint) -> bool:
        """Ask the policy for one action after another until the game is over."""
        client = OpenAI(base_url=policy.base_url, api_key=policy.api_key)
        game, outcome = self._treasures.game(task), "continue"
        messages: list[ChatCompletionMessageParam] = [{"role": "system", "content": _ROLE + task.instruction}]
        while outcome == "continue":
            messages.append({"role": "user", "content": game.state()})
            answer = (
                client.chat.completions.create(model=policy.model, messages=messages).choices[0].message.content or ""
            )
            messages.append({"role": "assistant", "content": answer})
            outcome = game.act(answer.strip())
        return outcome == "success"
