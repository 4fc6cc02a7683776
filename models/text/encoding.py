"""Encoding of text by a Hugging Face tokenizer, in any thread."""

from threading import Lock
from typing import Any

_ONE_AT_A_TIME = Lock()
"""A fast tokenizer keeps whether it splits special tokens as a state, which another thread could change within a call."""


def encoded(tokenizer: Any, text: str, *, split_special_tokens: bool) -> tuple[int, ...]:
    """Return the tokens of a text, without those that the tokenizer adds to texts.

    Args:
        tokenizer: Hugging Face tokenizer.
        text: Text.
        split_special_tokens: Encode special tokens in the text like other text, so that it cannot forge one.
    """
    with _ONE_AT_A_TIME:
        return tuple(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=split_special_tokens))
