"""Generations that verl dumps in training: a prompt in text, what was generated, and its score."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.template_text import turns_in

TITLE, SPANS_FILES = "Generations of verl", False

_TEXTS, _OTHERS = ("input", "output"), ("score", "step")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a generation with its score and the number of its training step."""
    return all(isinstance(record.get(name), str) for name in _TEXTS) and all(name in record for name in _OTHERS)


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the generation, which is an episode."""
    return [(WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the turns of prompt and generation as a conversation; a generation may hold several."""
    (record,) = parts
    asked, said = (record[name] for name in _TEXTS)
    apart = [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
    fields = {name: value for name, value in record.items() if name not in _TEXTS}
    yield Recorded(turns_in(asked + said) or apart, fields)
