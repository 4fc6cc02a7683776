"""Questions to a chat model, conversations, and the ports of models that answer them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a chat model."""

    system: str
    """Instructions for the model; empty: the input has them. Never contains text from a log or from a model."""
    user: str
    """Input that the instructions apply to."""
    temperature: float | None = None
    """Sampling temperature; None uses the provider's default."""
    seed: int = 0
    """Sampling seed. The same question with the same seed may be answered from the cache."""
    top_p: float = 1.0
    """Nucleus sampling threshold; see Sampling."""
    as_json: bool = True
    """The answer is one JSON object."""
    max_tokens: int | None = None
    """Maximum number of tokens of the answer; None: the provider's."""


@dataclass(frozen=True, slots=True)
class Written:
    """Text that a chat model wrote."""

    text: str
    is_whole: bool
    """False if it met the limit of tokens."""


IsFine = Callable[[int, str], bool]
"""Predicate that returns whether an answer is usable, given the question's index (from 0) and the text."""


class ChatModel(Protocol):
    """A chat model that answers questions."""

    def answer(self, questions: Sequence[Question], is_fine: IsFine, num_attempts: int = 1) -> list[str]:
        """Return one answer per question, retried until usable; the last one if none is.

        Args:
            questions: Questions, sent concurrently.
            is_fine: Returns whether an answer is usable; only usable answers are cached.
            num_attempts: Maximum number of attempts per question.
        """
        ...


Messages = Sequence[Mapping[str, str]]
"""A conversation, oldest message first: each has a role and a content."""

_MESSAGE = re.compile(r'\d+ (?P<role>\w+): (?P<content>".*")')


def conversation_state(messages: Messages) -> str:
    """Return a conversation as a state, one line for each message: `- 1 user: "its text as JSON"`."""
    lines = (
        f"- {place} {one['role']}: {json.dumps(one['content'], ensure_ascii=False)}"
        for place, one in enumerate(messages, 1)
    )
    return "\n".join(lines)


def conversation_in(state: str) -> list[dict[str, str]] | None:
    """Return the conversation that a state is; None if it is another kind of state."""
    found = [_MESSAGE.fullmatch(line.removeprefix("- ")) for line in state.split("\n")]
    try:
        return (
            [{"role": one["role"], "content": json.loads(one["content"])} for one in found if one]
            if all(found)
            else None
        )
    except json.JSONDecodeError:
        return None


@dataclass(frozen=True, slots=True)
class Piece:
    """The next words of an answer."""

    text: str
    num_tokens: int
    """Tokens that were sampled for it."""
    num_prompt_tokens: int
    """Tokens of the conversation that is answered; 0: not known."""
    finish_reason: Literal["", "stop", "length"] = ""
    """Empty unless it is the last piece: the answer has ended, or met its limit."""


ConversationT = TypeVar("ConversationT")


class Conversationalist(Protocol[ConversationT]):
    """A model that continues several conversations at a time, piece by piece."""

    @property
    def num_at_once(self) -> int:
        """Maximum number of conversations that have begun to be answered and have not ended."""
        ...

    def begin(self, messages: Messages, max_new_tokens: int | None, temperature: float) -> ConversationT:
        """Return a conversation that waits for its answer. It may be called while others are answered.

        Args:
            messages: Conversation.
            max_new_tokens: Maximum number of tokens; None: as many as the model has room for.
            temperature: Sampling temperature; 0 is greedy.

        Raises:
            InputError: the model cannot read these messages, or they leave no room for an answer.
        """
        ...

    def advance(self, conversations: Sequence[ConversationT]) -> list[Piece]:
        """Return the next piece of each answer, sampled together. After an error, all of them must be ended."""
        ...

    def end(self, conversation: ConversationT) -> None:
        """Free what a conversation holds, answered or not; never while others are answered."""
        ...
