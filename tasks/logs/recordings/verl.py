"""Generations that verl dumps in training: a prompt in text, what was generated, and its score."""

import re
from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message

TITLE, SPANS_FILES = "Generations of verl", False

_TEXTS, _OTHERS = ("input", "output"), ("score", "step")
_TURN = re.compile(r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>\n?|\Z)", re.DOTALL)
"""Turn of a chat template that was written out with its special tokens."""
_BARE_TURN = re.compile(r"^(system|user|assistant|tool)\n", re.MULTILINE)
"""Beginning of a turn in text without them."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a generation with its score and the number of its training step."""
    return all(isinstance(record.get(name), str) for name in _TEXTS) and all(name in record for name in _OTHERS)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the generation, which is an episode."""
    return [(WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the turns of prompt and generation as a conversation; a generation may hold several."""
    (record,) = parts
    messages = [one for one in _turns(record["input"] + record["output"], record) if one["content"].strip()]
    yield Recorded(messages, {name: value for name, value in record.items() if name not in _TEXTS})


def _turns(text: str, record: dict[str, Any]) -> list[Message]:
    turns = _TURN.findall(text)
    if not turns:
        _, *found = _BARE_TURN.split(text)
        turns = [*zip(found[::2], found[1::2], strict=True)]
    if not turns:
        turns = [("user", record["input"]), ("assistant", record["output"])]
    return [{"role": role, "content": content.strip()} for role, content in turns]
