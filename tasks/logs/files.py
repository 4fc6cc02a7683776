"""Read records from log files, one after the other, so that a file of any size takes little memory."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import ijson
import pyarrow.parquet as pq
from pyarrow import ArrowInvalid

from infra.files.digests import sha256_of
from schemas.errors import DataError

_LINES, _JSON, _PARQUET = (".jsonl", ".ndjson"), ".json", ".parquet"
_ROWS_AT_ONCE = 4_096
_MAX_DEPTH = 2_000
_DEEPER = {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}
RAW_CHARACTERS = 2_000
"""Maximum number of characters of a rejected record that are stored."""


@dataclass(frozen=True, slots=True)
class Record:
    """Record in a file; one that cannot be read has a reason in place of a value."""

    where: str
    value: dict[str, Any]
    reason: str = ""
    raw: str = ""
    """Original text of a record that cannot be read."""


def files_in(source: Path) -> dict[str, Path]:
    """Return the files in a folder and its subfolders by relative path, in order; or a single file by its name.

    Hidden files and folders are left out.

    Raises:
        DataError: there are no files.
    """
    if source.is_file():
        return {source.name: source}
    found = {str(path.relative_to(source)): path for path in sorted(source.rglob("*")) if path.is_file()}
    shown = {name: path for name, path in found.items() if not any(part.startswith(".") for part in Path(name).parts)}
    if not shown:
        raise DataError(f"{source}: no such file, and no folder with files: give logs as .jsonl, .json or .parquet")
    return shown


def log_files(path: str) -> dict[str, str]:
    """Return the SHA-256 of the files to import, by name; none if the logs are collected.

    Raises:
        DataError: there is no such file.
    """
    return {name: sha256_of(file) for name, file in files_in(Path(path)).items()} if path else {}


def records_in(file: Path, name: str) -> Iterator[Record]:
    """Yield all records of a file; the name says where they were found."""
    if file.suffix == _PARQUET:
        yield from _rows(file, name)
    elif file.suffix in _LINES:
        yield from _lines(file, name)
    elif file.suffix == _JSON:
        yield from _values(file, name)
    else:
        yield Record(name, {}, f"format {file.suffix or 'without suffix'} is not known; use .jsonl, .json or .parquet")


def _lines(file: Path, name: str) -> Iterator[Record]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            where = f"{name} line {number}"
            try:
                yield _record(where, json.loads(line))
            except (ValueError, RecursionError):  # the latter if it is nested too deeply
                yield Record(where, {}, "is no JSON", line.rstrip("\n"))


def _values(file: Path, name: str) -> Iterator[Record]:
    """Yield the items of an array, or one object after another."""
    with file.open("rb") as content:
        place = "item" if _begins_with(content, b"[") else ""
        number = 0
        try:
            events = ijson.basic_parse(content, multiple_values=not place, use_float=True)
            for value in ijson.items(ijson.parse(_of_bounded_depth(events)), place):
                number += 1
                yield _record(f"{name} record {number}", value)
        except ijson.JSONError as error:
            yield Record(f"{name} after record {number}", {}, "is no JSON", str(error))


def _of_bounded_depth(events: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the events of a JSON parser up to a maximum depth, since it stores a path to each level."""
    depth = 0
    for event, value in events:
        depth += _DEEPER.get(event, 0)
        if depth > _MAX_DEPTH:
            raise ijson.JSONError(f"it is nested more than {_MAX_DEPTH:,} deep")
        yield event, value


def _begins_with(content: BinaryIO, sign: bytes) -> bool:
    first = content.read(1)
    while first.isspace():
        first = content.read(1)
    content.seek(0)
    return first == sign


def _rows(file: Path, name: str) -> Iterator[Record]:
    try:
        batches = pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE)
        rows = (row for batch in batches for row in batch.to_pylist())
        for number, row in enumerate(rows):
            yield Record(f"{name} row {number}", row)
    except (OSError, ArrowInvalid) as error:
        yield Record(name, {}, "cannot be read as Parquet", str(error))


def _record(where: str, value: Any) -> Record:
    try:
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is not valid text, and no store accepts it
    except UnicodeEncodeError:
        return Record(where, {}, "is no valid Unicode", json.dumps(value))
    except RecursionError:
        return Record(where, {}, "is nested too deeply")
    return (
        Record(where, value) if isinstance(value, dict) else Record(where, {}, "is no JSON object", json.dumps(value))
    )
