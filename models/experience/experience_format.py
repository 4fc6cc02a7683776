"""Port of what an experience model reads and writes: situations and tasks in tokens, and its answers in our markers."""

from collections.abc import Sequence
from typing import Protocol

from models.text.policies.policy_format import Shown
from models.text.prompts import TransitionQuery, last_actions
from schemas.recipes.networks import ExperienceRecipe
from schemas.records import AgentTask, Step


class ExperienceFormat(Protocol):
    """Prompts of one experience model, and how its answers are read. The same weights vary tasks."""

    end_ids: tuple[int, ...]
    """Tokens that end an answer."""

    def decode(self, ids: Sequence[int]) -> str:
        """Decode tokens as text."""
        ...

    def situation(self, situation: TransitionQuery) -> Shown:
        """Return the prompt of a prediction (paper, Eq. 4), or of a review where predictions are shown."""
        ...

    def prediction(self, state: str, step: Step, *, with_reasoning: bool = True) -> list[int]:
        """Encode the step that follows a state as the model should write it, its end included."""
        ...

    def as_prediction(self, situation: TransitionQuery, text: str) -> str:
        """Return a decoded answer in the form `[think] .. [next] .. [outcome] ..`; as it is if it is unusable."""
        ...

    def variation_prompt(self, task: AgentTask, state: str) -> Shown:
        """Return the prompt for a variation of a task and its first state."""
        ...

    def variation(self, task: AgentTask, state: str) -> list[int]:
        """Encode a variation as the model should write it, its end included."""
        ...

    def as_variation(self, text: str) -> str:
        """Return a decoded answer in the form `instruction [state] s0`; as it is if it is unusable."""
        ...


def history_shown(recipe: ExperienceRecipe, turns: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return earlier turns as an experience model is shown them, oldest first.

    Args:
        recipe: Section that says how many are shown; those of a chat have their states.
        turns: States and the actions taken in them since the episode began, oldest first.
    """
    count = len(turns) if recipe.history_length == "all" else recipe.history_length
    if not recipe.is_chat:
        return last_actions([action for _, action in turns], count)
    return tuple(f"State:\n{state}\nAction: {action}" for state, action in turns[max(0, len(turns) - count) :])
