"""Timeline of an episode for the report: each action with the state changes it caused, and its real replay beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import accumulate, zip_longest

from schemas.records import Step, Trajectory, Turn

_MAX_STEPS, _MAX_LINES, _MAX_WORDS, _MAX_TEXT = 30, 8, 40, 1000
"""Longer episodes, changes and texts are shown in part, with a count of the rest."""

Piece = tuple[str, str]
"""Words of a state, after `same`, `del` or `ins`: it keeps, loses or gains them."""
Change = Sequence[Piece]
"""One changed line of a state."""


@dataclass(frozen=True, slots=True)
class Side:
    """Response of one environment to an action: the dream's, or the real one's."""

    changes: list[Change]
    num_left_out: int
    """Number of changed lines beyond those shown."""
    reward: float
    ending: str
    """Success, failure or a broken step; empty while the episode goes on."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One action of an episode, and its effect."""

    action: str
    side: Side
    reasoning: str
    demonstrations: list[str]
    replay: Side | None
    """Real effect of the same action, where it is not the dreamt one."""
    confirmed: bool
    """True if the real replay has the same state and the same end."""
    first_disagreement: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """Episode as shown in the report."""

    origin: str
    instruction: str
    outcome: str
    num_steps: int
    first_state: str
    moments: list[Moment]
    replay_outcome: str
    """Outcome of the real replay; empty if there is none."""
    disagrees_at: int
    """Number of the first step whose real replay differs; 0 if there is none."""

    @property
    def num_characters(self) -> int:
        """Approximate size on the page."""
        return len(repr(self))

    def first_steps(self, max_characters: int) -> "Timeline":
        """Return as many steps of the episode as fit into so many characters."""
        lengths = accumulate(len(repr(one)) for one in self.moments)
        return replace(self, moments=self.moments[: sum(length <= max_characters for length in lengths)])


def timeline(episode: Trajectory, replay: Trajectory | None = None) -> Timeline:
    """Return an episode's timeline.

    Args:
        episode: Dreamt or real episode.
        replay: Real replay of a dreamt episode's actions; it ends earlier if the real episode was over.
    """
    replayed = replay.turns if replay else []
    disagrees_at = _first_disagreement(episode.turns, replayed) if replay else 0
    pairs = list(zip_longest(episode.turns, replayed[: len(episode.turns)]))
    return Timeline(
        origin=episode.origin,
        instruction=shortened(episode.task.instruction),
        outcome=_outcome(episode),
        num_steps=len(pairs),
        first_state=shortened(episode.turns[0].state) if episode.turns else "",
        moments=[_moment(*pair, number == disagrees_at) for number, pair in enumerate(pairs[:_MAX_STEPS], 1)],
        replay_outcome=_outcome(replay) if replay else "",
        disagrees_at=disagrees_at,
    )


def _outcome(episode: Trajectory) -> str:
    if episode.failure:
        return f"no outcome: {episode.failure.value}"
    if episode.success:
        return "success"
    return "failure, step limit reached" if episode.truncated else "failure"


def _first_disagreement(turns: Sequence[Turn], replayed: Sequence[Turn]) -> int:
    pairs = zip_longest(turns, replayed)
    return next((number for number, (dreamt, real) in enumerate(pairs, 1) if not _agree(dreamt, real)), 0)


def _agree(dreamt: Turn | None, real: Turn | None) -> bool:
    if dreamt is None or real is None:
        return False
    one, other = dreamt.step, real.step
    return (one.state, one.done, one.success) == (other.state, other.done, other.success)


def _moment(turn: Turn, replayed: Turn | None, first_disagreement: bool) -> Moment:
    confirmed = _agree(turn, replayed)
    return Moment(
        action=shortened(turn.action),
        side=_side(turn),
        reasoning=shortened(turn.step.reasoning),
        demonstrations=[shortened(one.strip()) for one in turn.step.demonstrations],
        replay=_side(replayed) if replayed and not confirmed else None,
        confirmed=confirmed,
        first_disagreement=first_disagreement,
    )


def _side(turn: Turn) -> Side:
    changes = list(state_changes(turn.state, turn.step.state))
    return Side(changes[:_MAX_LINES], len(changes[_MAX_LINES:]), turn.step.reward, _ending(turn.step))


def _ending(step: Step) -> str:
    if step.failure:
        return f"broken: {step.failure.value}"
    return ("success" if step.success else "over, no success") if step.done else ""


def state_changes(before: str, after: str) -> Iterator[Change]:
    """Yield the lines of a state that changed; a line that replaces one is compared word by word."""
    old, new = before.splitlines(), after.splitlines()
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = old[old_from:old_to], new[new_from:new_to]
        if kind == "replace" and len(gone) == len(come):
            yield from (list(_word_changes(one, other)) for one, other in zip(gone, come, strict=True))
        elif kind != "equal":
            yield from ([("del", _few(line.split()))] for line in gone)
            yield from ([("ins", _few(line.split()))] for line in come)


def _word_changes(before: str, after: str) -> Iterator[Piece]:
    old, new = before.split(), after.split()
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield "same", _few(old[old_from:old_to])
            continue
        if gone := _few(old[old_from:old_to]):
            yield "del", gone
        if come := _few(new[new_from:new_to]):
            yield "ins", come


def _few(words: Sequence[str]) -> str:
    """Return words, with the middle of a long text replaced by its length."""
    if len(words) <= _MAX_WORDS:
        return shortened(" ".join(words))
    half = _MAX_WORDS // 2
    return shortened(f"{' '.join(words[:half])} … ({len(words) - 2 * half} words) … {' '.join(words[-half:])}")


def shortened(text: str) -> str:
    """Return a text that is at most about 1,000 characters long, with the number of those left out."""
    left_out = len(text) - _MAX_TEXT
    return text if left_out <= 0 else f"{text[:_MAX_TEXT]} … ({left_out:,} more characters)"
