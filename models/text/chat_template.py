"""A model's own chat template: the tokens around what a user says, and the token that ends an answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.text.encoding import encoded
from schemas.errors import InputError

_SAID, _ANSWERED = "said-by-the-user", "answered-by-the-model"
_DATE = "26 Jul 2024"
"""Date given to templates: the same prompt has the same tokens tomorrow."""


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """Tokens of a conversation of one message and its answer."""

    before: tuple[int, ...]
    """Tokens before the message; the first is the one that all texts of the model begin with, if it has one."""
    between: tuple[int, ...]
    """Tokens between the message and its answer."""
    end_id: int
    """Token that ends an answer."""

    def ends(self, others: Iterable[int]) -> tuple[int, ...]:
        """Return the tokens that end an answer: the template's, and others by the model's own settings."""
        return tuple(sorted({self.end_id, *others}))

    @classmethod
    def of(cls, tokenizer: Any) -> "ChatTemplate":
        """Read the template of a tokenizer.

        Raises:
            InputError: it has none, it is broken, or it does not say where an answer ends.
        """
        if not tokenizer.chat_template:
            raise InputError(
                'the model\'s tokenizer has no chat template, which policy.template = "chat" needs: take the instruct '
                'version of the model, or policy.template = "plain"'
            )
        question, answer = {"role": "user", "content": _SAID}, {"role": "assistant", "content": _ANSWERED}
        before, between = _parted(_rendered(tokenizer, [question], answered=False), _SAID)
        _, after = _parted(_rendered(tokenizer, [question, answer], answered=True), _ANSWERED)
        ends = _encoded(tokenizer, after)
        if not ends or ends[0] not in tokenizer.added_tokens_decoder:
            raise InputError(f"the model's chat template ends an answer with {after[:40]!r}, which is no special token")
        return cls(_encoded(tokenizer, before), _encoded(tokenizer, between), ends[0])


def conversation_ids(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """Return a conversation in the tokens of the model's template, up to where its answer begins.

    Contents are encoded without special tokens, so that none can end its message.

    Args:
        tokenizer: Tokenizer with a chat template.
        messages: Messages with role and content, oldest first.

    Raises:
        InputError: the template refuses these messages, or does not show each of them once.
    """
    places = [f"{_SAID}-{number}-" for number in range(len(messages))]
    marked = [{**one, "content": place} for one, place in zip(messages, places, strict=True)]
    rest, ids = _rendered(tokenizer, marked, answered=False), list[int]()
    for one, place in zip(messages, places, strict=True):
        before, rest = _parted(rest, place)
        ids += [*_encoded(tokenizer, before), *encoded(tokenizer, one["content"], split_special_tokens=True)]
    return [*ids, *_encoded(tokenizer, rest)]


def _rendered(tokenizer: Any, messages: Sequence[Mapping[str, str]], *, answered: bool) -> str:
    """Return the text of a conversation; if it is not answered, up to where the answer begins."""
    from jinja2 import TemplateError

    try:
        return tokenizer.apply_chat_template(
            messages,
            tokenize=False,
            add_generation_prompt=not answered,
            date_string=_DATE,
            strftime_now=lambda _: _DATE,
        )
    except (TemplateError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"the model's chat template is broken: {error}") from error


def _parted(text: str, said: str) -> tuple[str, str]:
    before, found, after = text.partition(said)
    if not found or said in after:
        raise InputError("the model's chat template does not show a message exactly once, so it cannot be used")
    return before, after


def _encoded(tokenizer: Any, text: str) -> tuple[int, ...]:
    """Return the tokens of the template's own text, special ones included."""
    return encoded(tokenizer, text, split_special_tokens=False)
