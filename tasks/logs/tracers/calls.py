"""Join the model calls of a trace to the agent's conversation.

Calls come in time. Each call was sent either all messages so far, only what is new, a window of the last ones, a summary in
place of older ones, or what nobody recorded; and a trace may hold the calls of judges, of sub-agents, and of answers that
were asked for again. The tree of spans tells whose calls they are, where it is known.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tasks.logs.message_content import (
    AGENT_ROLES,
    ANSWER_ROLES,
    SYSTEM_ROLES,
    calls_in,
    role_of,
    said_and_done,
    text_in,
)
from tasks.logs.shapes.in_words import Message
from tasks.logs.shapes.openai_shape import in_openai_shape

OTHERS = "other conversations in their trace, as of a judge or a sub-agent, which were left out"
COMPACTED = "a summary in place of messages, as the agent saw it"


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a model."""

    sent: list[Message]
    answered: list[Message]
    began: int = 0
    """Nanoseconds; 0 if it is not known."""
    is_compacted: bool = False
    """Whether a summary is known to stand for older messages."""
    within: tuple[str, ...] = ()
    """Agents, tools and checks whose spans are around it, the outermost first."""
    goes_on: bool = False
    """Whether it is known to follow the call before it."""


class _Said:
    """Message, and what it says whatever its shape and ids."""

    __slots__ = ("_key", "message")

    def __init__(self, message: Message) -> None:
        self.message = message
        self._key: str | None = None

    def is_same(self, other: "_Said") -> bool:
        return self.message == other.message or self.key == other.key

    @property
    def key(self) -> str:
        """Content without ids and the like."""
        if self._key is None:
            self._key = said_in(self.message)
        return self._key


@dataclass(slots=True)
class _Chain:
    """Messages of one conversation, so far."""

    system: str
    said: list[_Said] = field(default_factory=list)
    within: tuple[str, ...] = ()
    is_compacted: bool = False
    is_of_news: bool = False
    """Whether its calls are known to be sent only what is new."""

    @property
    def acts(self) -> bool:
        return any(calls_in(one.message) for one in self.said)

    def num_known(self, call: Call, sent: Sequence[_Said], system: str) -> int | None:
        """Return how many of the messages sent are known here; None if they belong to another conversation."""
        same = _num_equal(self.said, sent)
        if same == len(self.said) and (same > 1 or len(call.within) == len(self.within)):
            return same
        if same == len(sent) or len(call.within) != len(self.within):
            return None
        if overlap := _overlap(self.said, sent[same:]):
            return same + overlap
        if same == 0 and self._is_gone_on_with(call, sent[0], system):
            return 0
        return self._num_summed_up(call, sent, same) if system == self.system else None

    def _is_gone_on_with(self, call: Call, first: _Said, system: str) -> bool:
        """Return whether messages of which none is known are only what is new: results, or what the user says next."""
        if role_of(first.message) in ANSWER_ROLES and calls_in(self.said[-1].message):
            self.is_of_news = True
            return True
        return call.goes_on or (self.is_of_news and call.within == self.within and not system)

    def _num_summed_up(self, call: Call, sent: Sequence[_Said], same: int) -> int | None:
        """Return how many messages are known where one of them is a summary of older ones; None if none is."""
        kept = _overlap(self.said, sent[same + 1 :])
        follows = same > 0 and role_of(sent[same].message) not in (*AGENT_ROLES, *ANSWER_ROLES)
        if not (call.is_compacted or follows or (same == 0 and kept)):
            return None
        self.is_compacted = True
        return same + 1 + kept if kept else same


def conversation_of_calls(calls: Iterable[Call]) -> tuple[list[Message], tuple[str, ...]]:
    """Return the messages of the agent's conversation, and remarks; no messages if no call holds any.

    The agent's conversation is the outermost one of an agent, and of those the first one with calls of tools, or else the
    first. Of those that begin there with the same message, as when an answer was asked for again, it is the longest.

    Args:
        calls: Calls of a trace, in any order; of those that began at one time, the one that was sent less is the first.
    """
    chains = list[_Chain]()
    for call in sorted(calls, key=lambda one: (one.began, len(one.sent))):
        _take(call, chains)
    if not chains:
        return [], ()
    outer = _outermost(chains)
    first = next((one for one in outer if one.acts), outer[0])
    chosen = max((one for one in outer if one.said[0].is_same(first.said[0])), key=lambda one: len(one.said))
    known = {one.key for one in chosen.said}
    has_others = any(said.key not in known for one in chains if one is not chosen for said in one.said)
    remarks = (*((OTHERS,) if has_others else ()), *((COMPACTED,) if chosen.is_compacted else ()))
    return [one.message for one in chosen.said], remarks


def _outermost(chains: Sequence[_Chain]) -> list[_Chain]:
    """Return the conversations within the fewest agents and tools; words outside of all of them are no agent's."""
    of_agents = [one for one in chains if one.within or one.acts] or chains
    depth = min(len(one.within) for one in of_agents)
    return [one for one in of_agents if len(one.within) == depth]


def _take(call: Call, chains: list[_Chain]) -> None:
    shaped = in_openai_shape(call.sent)
    system = "\n".join(said_in(one) for one in shaped if role_of(one) in SYSTEM_ROLES)
    sent = [_Said(one) for one in shaped if role_of(one) not in SYSTEM_ROLES]
    answered = [_Said(one) for one in in_openai_shape(call.answered)]
    for chain in reversed(chains) if sent else ():
        known = chain.num_known(call, sent, system)
        if known is not None:
            chain.said += [*sent[known:], *answered]
            return
    if answered and not sent and chains:  # nobody knows what it was sent: it goes on where the last call ended
        chains[-1].said += answered
    elif sent or answered:
        chains.append(_Chain(system, [*sent, *answered], call.within))


def said_in(message: Message) -> str:
    """Return what a message says, without ids and the like."""
    try:
        if role_of(message) in AGENT_ROLES:
            return "\n".join(("agent", said_and_done({**message, "reasoning": None}, "", "")[1]))
        return f"{role_of(message)}\n{text_in(message).strip()}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return json.dumps(message, sort_keys=True, default=str)


def _num_equal(one: Sequence[_Said], other: Sequence[_Said]) -> int:
    """Return how many leading messages are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (mine, its) in pairs if not mine.is_same(its)), min(len(one), len(other)))


def _overlap(known: Sequence[_Said], sent: Sequence[_Said]) -> int:
    """Return the largest number of last messages that are the first ones sent."""
    lengths = range(min(len(known), len(sent)), 0, -1)
    return next((length for length in lengths if _num_equal(known[-length:], sent) == length), 0)


def moment(value: Any) -> int:
    """Return a time in nanoseconds: of a number of them, or of a date and time in ISO 8601; 0 if it is not known."""
    if isinstance(value, int | float):
        return int(value)
    text = str(value or "")
    if text.isdigit():
        return int(text)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1e9)
    except ValueError:
        return 0
