"""Policy that reads and writes with our own markers: small networks that are made of logs."""

from collections.abc import Sequence

from models.text.budgets import LEFT_OUT, within_budget
from models.text.policies.policy_format import Answer, Shown
from models.text.prompts import PromptFormat, last_actions
from schemas.recipes.policy import PolicyRecipe
from schemas.records import AgentTask
from schemas.sampling import Sampled, Sampling


class PlainPolicy:
    """Prompts of task, last actions and state; an answer is an action as it is."""

    def __init__(self, format: PromptFormat, recipe: PolicyRecipe) -> None:
        """Create the format of a policy.

        Args:
            format: Markers and text as tokens.
            recipe: Section that says what the policy is shown, with template = "plain".
        """
        self._format, self._recipe = format, recipe
        self.remembers_episode = recipe.remember_episode

    def prompt(self, task: AgentTask, history: Sequence[tuple[str, str]], state: str) -> Shown:
        """Return the whole episode so far, or the task, the last actions and the state; see `PolicyFormat`."""
        format = self._format
        if self.remembers_episode:
            return Shown(format.episode_so_far(task, history) + format.state(state))
        before, after = format.around_state

        def composed(actions: Sequence[str], state_ids: Sequence[int]) -> list[int]:
            return [*format.task_and_last_actions(task, actions), *before, *state_ids, *after]

        shown, state_ids = self._last_actions(history), format.ids(f"\n{state}")
        return within_budget(self._recipe.prompt_budget, shown, state_ids, format.ids(LEFT_OUT), composed)

    def reflection_prompt(self, task: AgentTask, history: Sequence[tuple[str, str]], state: str) -> list[int]:
        """Return a prompt that is answered by a reflection and then an action."""
        format = self._format
        before = (
            format.episode_so_far(task, history)
            if self.remembers_episode
            else format.task_and_last_actions(task, self._last_actions(history))
        )
        return before + format.state_to_think_about(state)

    def reflection(self, thought: str, action: str) -> list[int]:
        """Encode a reflection and the action that follows from it."""
        return self._format.thought_and_action(thought, action)

    def _last_actions(self, history: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        return last_actions([action for _, action in history], self._recipe.history_length)

    def next_state(self, state: str) -> Shown | None:
        """Return the state that follows in the same stream, if the policy remembers the episode."""
        return Shown(self._format.state(state)) if self.remembers_episode else None

    def answer(self, action: str, thought: str = "") -> list[int]:
        """Encode an action; a thought has no place."""
        return self._format.action(action)

    def read(self, sampled: Sampled) -> Answer:
        """Return what was written, without the end token, as the action."""
        action = self._format.decode(sampled.content).strip()
        cut = () if sampled.ended else (f"actions cut after {self._recipe.max_action_tokens} tokens",)
        return Answer(action, limits=cut)

    def sampling(self, temperature: float) -> Sampling:
        """Return how an action is sampled."""
        return Sampling(self._recipe.max_action_tokens, (self._format.end_id,), temperature)
