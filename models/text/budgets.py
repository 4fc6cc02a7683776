"""Prompts within a budget of tokens: the oldest history goes first, then the middle of the state."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from models.text.policies.policy_format import Shown

OLDEST_HISTORY, MIDDLE_OF_STATE = "prompts without their oldest history", "prompts without the middle of their state"
LEFT_OUT = "\n[...]\n"
"""Mark in place of what was left out of a state."""

Turn = TypeVar("Turn")


def within_budget(
    max_tokens: int,
    history: Sequence[Turn],
    state_ids: Sequence[int],
    mark_ids: Sequence[int],
    compose: Callable[[Sequence[Turn], Sequence[int]], list[int]],
    limit: Callable[[Turn], str] = lambda _: OLDEST_HISTORY,
) -> Shown:
    """Return a prompt of at most max_tokens, or the shortest possible one.

    Args:
        max_tokens: Budget.
        history: Earlier turns, oldest first, or other pieces in the order in which they may be left out.
        state_ids: Tokens of the present state.
        mark_ids: Tokens of LEFT_OUT.
        compose: Returns the prompt of a history and a state.
        limit: Returns the limit that was met where a piece was left out.
    """
    ids = compose(history, state_ids)
    limits: list[str] = []
    while len(ids) > max_tokens and history:
        limits += [limit(history[0])] if limit(history[0]) not in limits else []
        history = history[1:]
        ids = compose(history, state_ids)
    if len(ids) > max_tokens:
        kept = max(0, len(state_ids) - (len(ids) - max_tokens) - len(mark_ids))
        ids = compose(history, without_middle(state_ids, kept, mark_ids))
        limits.append(MIDDLE_OF_STATE)
    return Shown(ids, limits)


def without_middle(ids: Sequence[int], num_kept: int, mark_ids: Sequence[int]) -> list[int]:
    """Return the beginning and the end of a text, half of the kept tokens each, with a mark between them."""
    first = (num_kept + 1) // 2
    return [*ids[:first], *mark_ids, *ids[len(ids) - (num_kept - first) :]]
