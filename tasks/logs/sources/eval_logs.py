"""Logs of inspect in its own format: an archive with a file of JSON for each sample."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from tasks.logs.sources.opened import MAX_CHARACTERS

_ATTACHED = "attachment://"
"""Beginning of a text that stands for one under `attachments`, where the same text was long or is used several times."""


def samples_in(file: Path) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yield the name of each sample, and its content or a reason why it cannot be read.

    Raises:
        BadZipFile, OSError: the file is no archive.
    """
    with ZipFile(file) as archive:
        for entry in archive.infolist():
            if not (entry.filename.startswith("samples/") and entry.filename.endswith(".json")):
                continue
            if entry.file_size > MAX_CHARACTERS:
                yield entry.filename, f"is longer than {MAX_CHARACTERS:,} characters"
                continue
            try:
                yield entry.filename, _sample(json.loads(archive.read(entry)))
            except NotImplementedError as error:  # an archive with another compression
                yield (
                    entry.filename,
                    f"cannot be unpacked here ({error}): `inspect log convert --to json` writes it anew",
                )
            except ValueError:
                yield entry.filename, "is no JSON"


def _sample(sample: Any) -> Any:
    """Return a sample without the events, which hold all its messages again and again."""
    return {name: value for name, value in sample.items() if name != "events"} if isinstance(sample, dict) else sample


def with_attachments(sample: dict[str, Any]) -> dict[str, Any]:
    """Return a sample whose attachments are where it names them."""
    attachments = sample.get("attachments")
    if not isinstance(attachments, dict) or not attachments:
        return sample
    return {name: _filled_in(value, attachments) for name, value in sample.items() if name != "attachments"}


def _filled_in(value: Any, attachments: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled_in(one, attachments) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled_in(one, attachments) for one in value]
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attachments.get(value.removeprefix(_ATTACHED), value)
    return value
