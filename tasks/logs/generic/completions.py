"""Conversations as one text, or as a prompt and its completion: what TRL and verl log, and what was written out for training."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.template_text import turns_in
from tasks.logs.verdicts import as_number

TITLE, SPANS_FILES = "Conversations in text", False

_TEXTS = ("text", "full_text", "conversation")
_PARTS, _OF_VERL = ("prompt", "completion"), ("input", "output")
_OF_TRL = (*_PARTS, "step", "advantage")
"""Columns of TRL's completions; others are the rewards of functions, under their names, and columns of the data."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record has a prompt and its completion as texts, or a text that a chat template wrote."""
    return _parts(record) is not None or bool(turns_in(_text(record)))


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the record, which is an episode."""
    return [(WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the turns of the text, or what was asked and answered, with TRL's reward if there is one only."""
    (record,) = parts
    asked, said = _parts(record) or ("", "")
    apart = [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
    fields = {name: value for name, value in record.items() if name not in (*_TEXTS, *_PARTS, *_OF_VERL)}
    yield Recorded(turns_in(_text(record) or asked + said) or apart, {**only_reward(record), **fields})


def _parts(record: dict[str, Any]) -> tuple[str, str] | None:
    """Return a prompt and its completion; verl's have a score and the number of their training step beside them."""
    named = (_PARTS, _OF_VERL) if record.keys() >= {"score", "step"} else (_PARTS,)
    texts = ((record.get(asked), record.get(said)) for asked, said in named)
    return next(((asked, said) for asked, said in texts if isinstance(asked, str) and isinstance(said, str)), None)


def _text(record: dict[str, Any]) -> str:
    return next((record[name] for name in _TEXTS if isinstance(record.get(name), str)), "")


def only_reward(record: dict[str, Any]) -> dict[str, float]:
    """Return the reward of TRL's completions, if one function gave all of it."""
    if "advantage" not in record:
        return {}
    others = {name: as_number(value) for name, value in record.items() if name not in _OF_TRL}
    numbers = {name: number for name, number in others.items() if number is not None}
    rewards = {name: number for name, number in numbers.items() if "reward" in name} or numbers
    return {"reward": next(iter(rewards.values()))} if len(rewards) == 1 else {}
