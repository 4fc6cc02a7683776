"""Port of what a policy reads and writes: prompts in tokens, and actions found in what it wrote."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from schemas.records import MALFORMED, AgentTask
from schemas.sampling import Sampled, Sampling


@dataclass(frozen=True, slots=True)
class Shown:
    """Prompt, and the limits that it met."""

    ids: list[int]
    limits: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An action, or text that is refused, in the words of a policy."""

    action: str
    thought: str = ""
    limits: Sequence[str] = ()
    """Limits that it met, and errors of its form."""


class PolicyFormat(Protocol):
    """Prompts of one policy, and how its answers are read."""

    remembers_episode: bool
    """True if the policy sees the whole episode in one stream; else each turn has a prompt of its own."""

    def prompt(self, task: AgentTask, history: Sequence[tuple[str, str]], state: str) -> Shown:
        """Return all that the policy is shown before its action.

        Args:
            task: Agent task.
            history: States and the actions taken in them since the episode began, oldest first.
            state: Present state.
        """
        ...

    def next_state(self, state: str) -> Shown | None:
        """Return what is added to the stream of the episode; None if each turn has a prompt of its own."""
        ...

    def answer(self, action: str, thought: str = "") -> list[int]:
        """Encode an action as the policy should write it."""
        ...

    def read(self, sampled: Sampled) -> Answer:
        """Find the action in what the policy wrote."""
        ...

    def sampling(self, temperature: float) -> Sampling:
        """Return how an answer is sampled."""
        ...


def is_malformed(action: str) -> bool:
    """Return whether an action stands for an answer that has none."""
    return action == MALFORMED
