"""Draft of the mapping of a log: a commented TOML file that says what is understood, for people to correct."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from schemas.recipes.log_mapping import LogMapping, MessageMapping
from tasks.logs.convert import Samples
from tasks.logs.known_kinds import title_of
from tasks.logs.verdicts import REWARDS

_EXAMPLES = {
    "names": {"role": "speaker", "text": "utterance.text"},
    "paths": {"trajectory_id": "meta.id"},
    "constants": {"family": "logged"},
}
_WIDTH = 110


def drafted(found: Samples) -> str:
    """Return the mapping by which the beginning of a log was read, as TOML with all keys and what they mean."""
    kinds, verdicts = list(found.kinds), list(found.verdicts)
    known = ", ".join(map(title_of, kinds)) or "nothing that is known"
    read = {"format": kinds[0]} if len(kinds) == 1 else {}
    lines = [f"# Understood as: {known}. Lines after # are defaults or examples.", *_section(LogMapping(), read)]
    for name, examples in _EXAMPLES.items():
        given = _verdict(verdicts[0]) if name == "paths" and len(verdicts) == 1 else {}
        description = LogMapping.model_fields[name].description
        lines += ["", *_comment(description), f"[{name}]", *_lines(given, ""), *_lines(examples, "# ")]
    return "\n".join([*lines, "", "[messages]", *_section(MessageMapping(), {}), ""])


def _verdict(name: str) -> dict[str, str]:
    return {"reward" if name in REWARDS else "success": name}


def _section(defaults: BaseModel, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the plain fields of a section: what is given as it is, and defaults behind #."""
    for name, field in type(defaults).model_fields.items():
        value = getattr(defaults, name)
        if not isinstance(value, dict | BaseModel):
            yield from ("", *_comment(field.description))
            yield from _lines({name: given.get(name, value)}, "" if name in given else "# ")


def _lines(values: Mapping[str, Any], before: str) -> Iterator[str]:
    yield from (f"{before}{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def _comment(description: str | None) -> Iterator[str]:
    yield from (f"# {line}" for line in textwrap.wrap(description or "", _WIDTH))
