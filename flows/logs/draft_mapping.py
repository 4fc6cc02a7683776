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


def drafted(mapping: LogMapping, found: Samples) -> str:
    """Return the mapping by which the beginning of a log was read, as TOML with all keys and what they mean."""
    kinds = list(found.kinds)
    known = ", ".join(map(title_of, kinds)) or "nothing that is known"
    given = {**({"format": kinds[0]} if len(kinds) == 1 else {}), **mapping.model_dump(exclude_defaults=True)}
    lines = [f"# Understood as: {known}. Lines after # are defaults or examples.", *_section(LogMapping(), given)]
    for name, examples in _EXAMPLES.items():
        description = LogMapping.model_fields[name].description
        inside = {**(_verdict(found) if name == "paths" else {}), **given.get(name, {})}
        rest = {key: value for key, value in examples.items() if key not in inside}
        lines += ["", *_comment(description), f"[{name}]", *_lines(inside, ""), *_lines(rest, "# ")]
    return "\n".join([*lines, "", "[messages]", *_section(MessageMapping(), given.get("messages", {})), ""])


def _verdict(found: Samples) -> dict[str, str]:
    """Return the field with the verdicts, if it is the same in all episodes."""
    return {"reward" if name in REWARDS else "success": name for name in found.verdicts if len(found.verdicts) == 1}


def _section(defaults: BaseModel, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the plain fields of a section: what is given as it is, and defaults behind #; for want of one, an example."""
    for name, field in type(defaults).model_fields.items():
        value = True if (value := getattr(defaults, name)) is None else value
        if not isinstance(value, dict | BaseModel):
            yield from ("", *_comment(field.description))
            yield from _lines({name: given.get(name, value)}, "" if name in given else "# ")


def _lines(values: Mapping[str, Any], before: str) -> Iterator[str]:
    yield from (f"{before}{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def _comment(description: str | None) -> Iterator[str]:
    yield from (f"# {line}" for line in textwrap.wrap(description or "", _WIDTH))
