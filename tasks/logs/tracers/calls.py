"""Join the model calls of a trace to the agent's conversation.

Calls come in time. Each call was sent either all messages so far, only what is new, a window of the last ones, or a summary
in place of older ones; and a trace may hold the calls of judges, of sub-agents, and of answers that were asked for again.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tasks.logs.message_content import calls_in, role_of, said_and_done, text_in
from tasks.logs.shapes.in_words import Message
from tasks.logs.shapes.openai_shape import in_openai_shape

OTHERS = "other conversations in their trace, as of a judge or a sub-agent, which were left out"
COMPACTED = "a summary in place of messages, as the agent saw it"
_AGENT = ("assistant", "model", "gpt", "ai", "agent")
_ANSWERS = ("tool", "function")
_SYSTEM = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a model."""

    sent: list[Message]
    answered: list[Message]
    began: int = 0
    """Nanoseconds; 0 if it is not known."""
    is_compacted: bool = False
    """Whether a summary is known to stand for older messages."""


@dataclass(slots=True)
class _Chain:
    """Messages of one conversation, so far."""

    system: str
    messages: list[Message] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    """Meaning of each message, in which equal ones are equal whatever their shape."""
    is_compacted: bool = False

    def add(self, messages: Sequence[Message]) -> None:
        self.messages += messages
        self.keys += map(_key, messages)

    @property
    def acts(self) -> bool:
        return any(calls_in(one) for one in self.messages)

    def new_from(self, sent: Sequence[Message], keys: Sequence[str], system: str, *, is_compacted: bool) -> int | None:
        """Return the number of messages sent of which this chain knows; None if they belong to another conversation."""
        same = _num_equal(self.keys, keys)
        if same == len(self.keys):
            return same
        if same == len(keys):
            return None
        if overlap := _overlap(self.keys, keys[same:]):
            return same + overlap
        if same == 0 and role_of(sent[0]) in _ANSWERS and calls_in(self.messages[-1]):
            return 0
        is_summary = is_compacted or (same > 0 and role_of(sent[same]) not in (*_AGENT, *_ANSWERS))
        if is_summary and system == self.system:
            self.is_compacted = True
            return same
        return None


def conversation_of_calls(calls: Iterable[Call]) -> tuple[list[Message], tuple[str, ...]]:
    """Return the messages of the agent's conversation, and remarks; no messages if no call holds any.

    The agent's conversation is the first one with calls of tools, or else the first. Of those that begin with the same
    message, as when an answer was asked for again, it is the longest.

    Args:
        calls: Calls of a trace, in any order; of those that began at one time, the one that was sent less is the first.
    """
    chains = list[_Chain]()
    for call in sorted(calls, key=lambda one: (one.began, len(one.sent))):
        _take(call, chains)
    if not chains:
        return [], ()
    first = next((one for one in chains if one.acts), chains[0])
    chosen = max((one for one in chains if one.keys[0] == first.keys[0]), key=lambda one: len(one.keys))
    remarks = (*((OTHERS,) if len(chains) > 1 else ()), *((COMPACTED,) if chosen.is_compacted else ()))
    return chosen.messages, remarks


def _take(call: Call, chains: list[_Chain]) -> None:
    shaped = in_openai_shape(call.sent)
    system = "\n".join(_key(one) for one in shaped if role_of(one) in _SYSTEM)
    sent = [one for one in shaped if role_of(one) not in _SYSTEM]
    answered, keys = in_openai_shape(call.answered), [_key(one) for one in sent]
    for chain in reversed(chains) if sent else ():
        known = chain.new_from(sent, keys, system, is_compacted=call.is_compacted)
        if known is not None:
            chain.add([*sent[known:], *answered])
            return
    if sent or answered:
        chains.append(_Chain(system))
        chains[-1].add([*sent, *answered])


def _key(message: Message) -> str:
    """Return what a message says, without ids and the like."""
    try:
        if role_of(message) in _AGENT:
            return "\n".join(("agent", said_and_done({**message, "reasoning": None}, "", "")[1]))
        return f"{role_of(message)}\n{text_in(message).strip()}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return json.dumps(message, sort_keys=True, default=str)


def _num_equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many leading keys are equal."""
    pairs = zip(one, other, strict=False)
    return next((number for number, (mine, its) in enumerate(pairs) if mine != its), min(len(one), len(other)))


def _overlap(known: Sequence[str], sent: Sequence[str]) -> int:
    """Return the largest number of last keys that are the first ones of another list."""
    lengths = range(min(len(known), len(sent)), 0, -1)
    return next((length for length in lengths if list(known[-length:]) == list(sent[:length])), 0)


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
