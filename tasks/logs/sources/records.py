"""Read records from log files, one after the other, so that a file of any size takes little memory.

A file is what its content says, not what it is called: lines of JSON, values that span lines, an array of records, or an
array of messages, which is one record. A text that holds no JSON is one record, too.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import ijson
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from tasks.logs.generic.message_rows import names_conversation
from tasks.logs.shapes.openai_shape import is_message
from tasks.logs.sources.eval_logs import samples_in
from tasks.logs.sources.opened import (
    MAX_CHARACTERS,
    first_sign,
    format_of,
    lines_in,
    open_bytes,
    open_text,
    open_utf8,
)

_LINES = (".jsonl", ".ndjson")
"""Formats that have a record on each line; in others, records may span lines."""
_ARCHIVES = (".zip", ".tar", ".tgz", ".7z")
_LENGTH_OF_SIGN = 64
"""Bytes at the beginning of a file that show what it is."""
_ROWS_AT_ONCE = 4_096
_READ_AT_ONCE = MAX_CHARACTERS // 4
"""Characters of a file of JSON that is read at once."""
_MAX_DEPTH = 2_000
_MAX_DIGITS = 4_000
"""Digits of an integer above which it is kept as text."""
_DEEPER = {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}
RAW_CHARACTERS = 2_000
"""Maximum number of characters of a rejected record that are stored."""
_MARK = "\ufeff"
"""Mark of an encoding, which is amid a file that was put together of several."""
_TOO_LONG = f"is longer than {MAX_CHARACTERS:,} characters"


@dataclass(frozen=True, slots=True)
class Record:
    """Record in a file; one that cannot be read has a reason in place of a value."""

    where: str
    value: dict[str, Any]
    reason: str = ""
    raw: str = ""
    """Original text of a record that cannot be read."""


def records_in(file: Path, name: str) -> Iterator[Record]:
    """Yield all records of a file; the name says where they were found."""
    read = _READERS.get(format_of(file)) or _reader_by_content(file)
    if format_of(file) in _ARCHIVES:
        yield Record(name, {}, "is an archive: unpack it, and name the folder with its files")
        return
    if read is None:
        known = ", ".join(_READERS)
        yield Record(
            name, {}, f"format {file.suffix or 'without suffix'} is not known; known are {known}, also compressed"
        )
        return
    try:
        yield from read(file, name)
    except (OSError, EOFError, pa.ArrowException, csv.Error, BadZipFile) as error:
        yield Record(name, {}, f"cannot be read as {_TITLES.get(format_of(file), format_of(file)[1:])}", str(error))


def _reader_by_content(file: Path) -> "Callable[[Path, str], Iterator[Record]] | None":
    """Return the reader of a file whose suffix says nothing: of a table, or of JSON."""
    with open_bytes(file) as content:
        begins = content.read(_LENGTH_OF_SIGN)
    table = next((read for sign, read in _TABLES.items() if begins.startswith(sign)), None)
    return table or (_texts if begins.lstrip()[:1] in (b"{", b"[") else None)


def _texts(file: Path, name: str) -> Iterator[Record]:
    """Yield the records of a text: line by line if the first line is a whole value, else value by value."""
    with open_utf8(file) as content:
        is_array = first_sign(content) == b"["
    with open_text(file) as text:
        lines = (line for line in enumerate(lines_in(text), 1) if line[1] is None or line[1].strip())
        first = next(lines, None) if format_of(file) in _LINES or not is_array else (0, "")
        if first is None:
            return
        if not _is_whole(first[1]):
            found = _whole_values(file)
            if found is not None or format_of(file) not in _LINES:
                yield from _values(file, name, found)
                return
        for number, line in chain([first], lines):
            yield from _of_line(f"{name} line {number}", line)


def _words(file: Path, name: str) -> Iterator[Record]:
    """Yield a text as one record, unless it holds JSON."""
    with open_utf8(file) as content:
        is_json = first_sign(content) in (b"{", b"[")
    if is_json:
        yield from _texts(file, name)
        return
    with open_text(file) as content:
        text = content.read(MAX_CHARACTERS + 1)
    yield Record(name, {"text": text}) if len(text) <= MAX_CHARACTERS else Record(name, {}, _TOO_LONG)


def _is_whole(line: str | None) -> bool:
    """Return whether a line is a value; one that is too long to be read counts as one."""
    try:
        return line is None or _parsed(line) is not None
    except (ValueError, RecursionError):
        return False


def _of_line(where: str, line: str | None) -> Iterator[Record]:
    if line is None:
        yield Record(where, {}, _TOO_LONG)
        return
    try:
        value = _parsed(line.rstrip().removesuffix(","))
    except (ValueError, RecursionError):  # the latter if it is nested too deeply
        yield Record(where, {}, "is no JSON", line)
        return
    several = as_records(value)
    for number, one in enumerate(several, 1):
        yield _record(f"{where} item {number}" if len(several) > 1 else where, one)


def _parsed(text: str) -> Any:
    return json.loads(text.lstrip(_MARK), parse_int=_whole_number)


def _whole_number(digits: str) -> int | str:
    """Return an integer; one of more digits than Python converts stays text."""
    return int(digits) if len(digits) <= _MAX_DIGITS else digits


def as_records(value: Any) -> list[Any]:
    """Return the records in a value: the items of an array, unless they are messages, which are one record."""
    if not isinstance(value, list) or not any(isinstance(item, dict | list) for item in value):
        return [value]
    if value and all(map(is_message, value)) and not all(map(names_conversation, value)):
        return [{"messages": value}]
    return [record for item in value for record in (as_records(item) if isinstance(item, list) else [item])]


def _values(file: Path, name: str, found: list[Any] | None) -> Iterator[Record]:
    """Yield values that span lines: those that were found at once, or else one after the other from the file."""
    if found is None:
        yield from _streamed_values(file, name)
        return
    for number, one in enumerate(found, 1):
        yield _record(f"{name} record {number}", one)


def _whole_values(file: Path) -> list[Any] | None:
    """Return the records of a small file, which may have what only Python reads, as NaN; None if it is large or broken."""
    with open_text(file) as content:
        text = content.read(_READ_AT_ONCE + 1)
    if len(text) > _READ_AT_ONCE:
        return None
    found, at, decoder = list[Any](), _next_value(text, 0), json.JSONDecoder(parse_int=_whole_number)
    try:
        while at < len(text):
            value, end = decoder.raw_decode(text, at)
            found += as_records(value)
            at = _next_value(text, end)
    except (ValueError, RecursionError):
        return None
    return found


def _next_value(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _streamed_values(file: Path, name: str) -> Iterator[Record]:
    """Yield the items of an array, or one object after another, up to what cannot be read."""
    with open_utf8(file) as content:
        begins, number = first_sign(content), 0
    with open_utf8(file) as content:
        events = ijson.basic_parse(content, multiple_values=begins != b"[", use_float=True)
        items = ijson.items(ijson.parse(_bounded(events)), "item" if begins == b"[" else "")
        try:
            for value in _joined(items):
                number += 1
                yield _record(f"{name} record {number}", value)
        except (ijson.JSONError, UnicodeDecodeError) as error:
            yield Record(f"{name} after record {number}", {}, "is no JSON", str(error))


def _joined(items: Iterator[Any]) -> Iterator[Any]:
    """Yield the items of an array; an array of messages as the one record that it is."""
    first = next(items, None)
    if first is None:
        return
    if is_message(first):
        yield from as_records([first, *items])
        return
    for item in chain([first], items):
        yield from as_records(item)


def _bounded(events: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the events of a JSON parser up to a maximum depth and length of a record, since a record is kept whole."""
    depth = length = 0
    for event, value in events:
        depth += _DEEPER.get(event, 0)
        length = 0 if depth <= 1 else length + (len(value) if isinstance(value, str) else 8)
        if depth > _MAX_DEPTH:
            raise ijson.JSONError(f"it is nested more than {_MAX_DEPTH:,} deep")
        if length > MAX_CHARACTERS:
            raise ijson.JSONError(_TOO_LONG)
        yield event, value


def _rows_of_parquet(file: Path, name: str) -> Iterator[Record]:
    yield from _rows(name, pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE))


def _rows_of_arrow(file: Path, name: str) -> Iterator[Record]:
    """Yield the rows of Arrow's stream or file format; datasets of Hugging Face are streams."""
    with pa.OSFile(str(file)) as content:
        try:
            batches = iter(pyarrow.ipc.open_stream(content))
        except pa.ArrowInvalid:
            opened = pyarrow.ipc.open_file(str(file))
            batches = (opened.get_batch(number) for number in range(opened.num_record_batches))
        yield from _rows(name, batches)


def _rows(name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
    rows = (row for batch in batches for row in _rows_of_batch(batch))
    for number, row in enumerate(rows):
        value = {key: _without_padding(one) for key, one in (row or {}).items()}
        yield Record(f"{name} row {number}", value, "" if row is not None else _TOO_LONG)


def _rows_of_batch(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | None]:
    """Yield the rows of a batch; None for one that is too long. Those of a large batch are made one by one."""
    if batch.nbytes <= MAX_CHARACTERS:
        yield from batch.to_pylist()
        return
    for place in range(batch.num_rows):
        row = batch.slice(place, 1)
        yield row.to_pylist()[0] if row.nbytes <= MAX_CHARACTERS else None


def _without_padding(value: Any) -> Any:
    """Return a nested value without the nulls that a table has in place of fields that a record lacks."""
    if isinstance(value, dict):
        return {key: _without_padding(one) for key, one in value.items() if one is not None}
    return [_without_padding(one) for one in value] if isinstance(value, list) else value


def _rows_of_csv(file: Path, name: str) -> Iterator[Record]:
    csv.field_size_limit(MAX_CHARACTERS)
    with open_text(file) as text:
        for number, row in enumerate(csv.DictReader(text), 1):
            yield _record(f"{name} row {number}", {key: one for key, one in row.items() if key and one is not None})


def _samples(file: Path, name: str) -> Iterator[Record]:
    for sample, content in samples_in(file):
        where = f"{name} {sample}"
        yield Record(where, {}, content) if isinstance(content, str) else _record(where, content)


def _record(where: str, value: Any) -> Record:
    try:
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is not valid text, and no store accepts it
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        value = json.loads(text.decode("utf-16-le", "replace"))
    except RecursionError:
        return Record(where, {}, "is nested too deeply")
    return (
        Record(where, value) if isinstance(value, dict) else Record(where, {}, "is no JSON object", json.dumps(value))
    )


_TITLES = {".parquet": "Parquet", ".arrow": "Arrow", ".csv": "CSV", ".eval": "a log of inspect"}
_TABLES = {b"PAR1": _rows_of_parquet, b"ARROW1": _rows_of_arrow}
"""Readers of tables by how their files begin."""
_READERS: dict[str, Callable[[Path, str], Iterator[Record]]] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json", ".traj"), _texts),
    **dict.fromkeys((".txt", ".log"), _words),
    **{".parquet": _rows_of_parquet, ".arrow": _rows_of_arrow, ".csv": _rows_of_csv, ".eval": _samples},
}
