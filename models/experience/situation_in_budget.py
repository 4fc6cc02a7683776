"""Message of a situation within a budget: the oldest history goes first, then the farthest demonstrations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from models.experience.experience_prompt import around_state
from models.text.budgets import LEFT_OUT, OLDEST_HISTORY, within_budget
from models.text.policies.policy_format import Shown
from models.text.prompts import TransitionQuery
from schemas.recipes.networks import NextState
from schemas.state_text import free_text

FARTHEST_DEMONSTRATIONS = "prompts without their farthest demonstrations"

Encode = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class _Part:
    """Piece of a prompt that may be left out."""

    text: str
    is_history: bool

    @property
    def limit(self) -> str:
        return OLDEST_HISTORY if self.is_history else FARTHEST_DEMONSTRATIONS


def situation_in_budget(
    situation: TransitionQuery,
    next_state: NextState,
    max_tokens: int,
    encode: Encode,
    around: tuple[list[int], list[int]],
) -> Shown:
    """Return the prompt of a situation in at most max_tokens, or the shortest possible one.

    Args:
        situation: Situation with its history and demonstrations.
        next_state: Form of the next state.
        max_tokens: Budget.
        encode: Returns the tokens of a text.
        around: Tokens before and after the message, which count.
    """

    def composed(parts: Sequence[_Part], state_ids: Sequence[int]) -> list[int]:
        history = [part.text for part in parts if part.is_history]
        demonstrations = [part.text for part in reversed(parts) if not part.is_history]
        before, after = around_state(situation, history, demonstrations, next_state)
        encoded = [[id for piece in pieces for id in encode(piece)] for pieces in (before, after)]
        return [*around[0], *encoded[0], *state_ids, *encoded[1], *around[1]]

    parts = [
        *(_Part(text, is_history=True) for text in situation.history),
        *(_Part(text, is_history=False) for text in reversed(situation.demonstrations)),
    ]
    state = encode(free_text(situation.state))
    return within_budget(max_tokens, parts, state, encode(LEFT_OUT), composed, lambda part: part.limit)
