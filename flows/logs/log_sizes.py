"""Sizes of converted logs that a recipe depends on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.records import Trajectory
from schemas.state_text import changes_between

_CHARACTERS_PER_TOKEN = 2
"""Characters of a token at least, on average, in a byte-level vocabulary of a thousand that is made of the logs."""
_STEP = 32


@dataclass(frozen=True, slots=True)
class LogSizes:
    """Counts, and lengths in tokens, which are estimated from characters."""

    num_episodes: int
    num_transitions: int
    num_tasks: int
    num_successes: int
    longest_episode: int
    """Number of steps."""
    action_tokens: int
    """Tokens of the longest action."""
    prediction_tokens: int
    """Tokens of the longest prediction."""
    prompt_tokens: int
    """Tokens of the longest state with its task."""


def sizes_of(episodes: Sequence[Trajectory]) -> LogSizes:
    """Return the sizes of logged episodes."""
    turns = [(one.task, turn) for one in episodes for turn in one.turns]
    return LogSizes(
        num_episodes=len(episodes),
        num_transitions=len(turns),
        num_tasks=len({one.task.task_id for one in episodes}),
        num_successes=sum(one.success for one in episodes),
        longest_episode=max(len(one.turns) for one in episodes),
        action_tokens=_tokens(turn.action for _, turn in turns),
        prediction_tokens=_tokens(changes_between(turn.state, turn.step.state) for _, turn in turns),
        prompt_tokens=_tokens(task.instruction + turn.state for task, turn in turns),
    )


def _tokens(texts: Iterable[str]) -> int:
    """Return the estimated tokens of the longest text and its end, rounded up."""
    tokens = max(map(len, texts)) / _CHARACTERS_PER_TOKEN + 1
    return _STEP * int(-(-tokens // _STEP))
