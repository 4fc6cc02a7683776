"""Records of log files as people have them: compressed, in other encodings, over several lines, and broken."""

import bz2
import gzip
import json
import lzma
from zipfile import ZIP_DEFLATED, ZipFile

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from schemas.recipes.log_mapping import LogMapping
from tasks.logs.sources import eval_logs, opened, records
from tasks.logs.sources.rearranged import rearranged
from tasks.logs.sources.records import Record, records_in

ONE, TWO = {"id": 1, "text": "café\r\nline"}, {"id": 2, "text": "z"}
LINES = f"{json.dumps(ONE, ensure_ascii=False)}\n\n   \n{json.dumps(TWO)}\n"
PRETTY = json.dumps([ONE, TWO], indent=1)
CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]


def read(folder, name: str, content: bytes) -> list:
    """Return what is read of a file: values, and the reason where there is none."""
    file = folder / name
    file.write_bytes(content)
    return [one.reason or one.value for one in records_in(file, name)]


CONTAINERS = {
    "lines": ("a.jsonl", LINES.encode()),
    "a suffix in capitals": ("a.JSONL", LINES.encode()),
    "lines in .json": ("a.json", LINES.encode()),
    ".traj": ("a.traj", PRETTY.encode()),
    "pretty-printed in .jsonl": ("a.jsonl", PRETTY.encode()),
    "an array in a line": ("a.jsonl", json.dumps([ONE, TWO]).encode()),
    "objects over several lines": ("a.json", f"{json.dumps(ONE, indent=2)}\n{json.dumps(TWO, indent=2)}".encode()),
    "gzip": ("a.jsonl.gz", gzip.compress(LINES.encode())),
    "bzip2": ("a.json.bz2", bz2.compress(PRETTY.encode())),
    "gzip without a suffix": ("a.jsonl", gzip.compress(LINES.encode())),
    "a suffix of gzip alone": ("a.jsonl.gz", LINES.encode()),
    "a suffix that says nothing": ("a.data", LINES.encode()),
    "commas at the ends of lines": ("a.jsonl", LINES.replace("}\n", "},\n").encode()),
    "xz": ("a.json.xz", lzma.compress(PRETTY.encode())),
    "gzip in capitals": ("a.JSON.GZ", gzip.compress(PRETTY.encode())),
    "mark of UTF-8, lines": ("a.jsonl", b"\xef\xbb\xbf" + LINES.encode()),
    "marks of UTF-8 of two files": (
        "a.jsonl",
        b"\xef\xbb\xbf" + LINES.encode().replace(b"\n{", b"\n\xef\xbb\xbf{"),
    ),
    "mark of UTF-8": ("a.json", b"\xef\xbb\xbf" + PRETTY.encode()),
    "UTF-16, lines": ("a.jsonl", LINES.encode("utf-16")),
    "UTF-16": ("a.json", PRETTY.encode("utf-16")),
    "UTF-32": ("a.json", PRETTY.encode("utf-32-le")),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_same_records_come_out_of_every_container(tmp_path, container):
    assert read(tmp_path, *CONTAINERS[container]) == [ONE, TWO]


def test_zstandard_is_read(tmp_path):
    file = tmp_path / "a.jsonl.zst"
    with pa.CompressedOutputStream(str(file), "zstd") as stream:
        stream.write(LINES.encode())
    assert [one.value for one in records_in(file, "a")] == [ONE, TWO]


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_tables_of_arrow_and_parquet_give_rows_without_the_nulls_that_pad_them(tmp_path, kind):
    rows = [{"id": 1, "call": {"a": 1}}, {"id": None, "call": {"b": [{"c": None, "d": 2}]}}]
    table = pa.Table.from_pylist(rows, pa.schema([("id", pa.int64()), ("call", pa.struct(
        [("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.int64()), ("d", pa.int64())])))]
    ))]))  # fmt: skip
    opened_as = {"stream": pa.ipc.new_stream, "file": pa.ipc.new_file}[kind]
    with opened_as(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, tmp_path / "a.parquet")
    for name in ("a.arrow", "a.parquet"):
        (tmp_path / f"{name}.data").write_bytes((tmp_path / name).read_bytes())
    for name in ("a.arrow", "a.parquet", *(("a.arrow.data",) if kind == "file" else ()), "a.parquet.data"):
        found = [one.value for one in records_in(tmp_path / name, name)]
        assert found == [{"id": 1, "call": {"a": 1}}, {"id": None, "call": {"b": [{"d": 2}]}}]


def test_a_log_of_inspect_is_an_archive_of_samples_with_attachments(tmp_path, monkeypatch):
    messages = [{"role": "user", "content": "attachment://a1"}, {"role": "assistant", "content": "attachment://gone"}]
    sample = {"id": 1, "messages": messages, "attachments": {"a1": "long"}, "events": [{"event": "model"}] * 9}
    files = {
        "header.json": "{}",
        "samples/1.json": json.dumps(sample),
        "samples/2.json": "{broken",
        "samples/3.json": "1",
    }
    monkeypatch.setattr(eval_logs, "MAX_CHARACTERS", 500)
    with ZipFile(tmp_path / "a.eval", "w", ZIP_DEFLATED) as archive:
        for name, content in {**files, "samples/4.json": json.dumps({"long": "x" * 500})}.items():
            archive.writestr(name, content)
    first, *bad = read(tmp_path, "a.eval", (tmp_path / "a.eval").read_bytes())
    (whole,) = rearranged(Record("a", first), LogMapping())
    assert whole.value == {"id": 1, "messages": [messages[0] | {"content": "long"}, messages[1]]}
    assert bad == ["is no JSON", "is no JSON object", "is longer than 500 characters"]
    assert read(tmp_path, "b.eval", b"no archive") == ["cannot be read as a log of inspect"]


def test_an_archive_is_to_be_unpacked(tmp_path):
    assert read(tmp_path, "a.zip", b"PK") == ["is an archive: unpack it, and name the folder with its files"]


def test_an_array_of_messages_is_one_record_and_an_array_of_such_arrays_is_several(tmp_path):
    assert read(tmp_path, "a.json", json.dumps(CHAT, indent=1).encode()) == [{"messages": CHAT}]
    assert read(tmp_path, "b.jsonl", json.dumps(CHAT).encode()) == [{"messages": CHAT}]
    assert read(tmp_path, "c.json", json.dumps([CHAT, CHAT]).encode()) == [{"messages": CHAT}] * 2


def test_messages_in_an_array_that_name_their_conversations_are_rows(tmp_path):
    rows = [{"session_id": session, **one} for session in (0, 1) for one in CHAT]
    assert read(tmp_path, "a.json", json.dumps(rows).encode()) == rows


def test_a_row_of_a_table_that_is_too_long_is_refused_and_the_others_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_CHARACTERS", 1_000)
    table = pa.table({"text": ["a", "x" * 5_000, "b"]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read(tmp_path, "t.parquet", (tmp_path / "t.parquet").read_bytes()) == [
        {"text": "a"},
        records._TOO_LONG,
        {"text": "b"},
    ]


def test_numbers_that_json_does_not_know_are_read_as_far_as_python_can(tmp_path):
    nan, huge = read(tmp_path, "a.json", b'[\n{"reward": NaN},\n{"reward": ' + b"9" * 5000 + b"}\n]")
    assert nan["reward"] != nan["reward"]
    assert huge["reward"] == "9" * 5000
    assert read(tmp_path, "a.csv", b'id,text\n1,"a\nb"\n2,\n') == [{"id": "1", "text": "a\nb"}, {"id": "2", "text": ""}]


def test_what_comes_before_a_break_is_read(tmp_path):
    assert read(tmp_path, "a.json", b'[\n{"id": 1},\n{"id": 2, "te') == [{"id": 1}, "is no JSON"]
    assert read(tmp_path, "b.jsonl", b'{"id": 1}\n{"id": \n{"id": 3}\n') == [{"id": 1}, "is no JSON", {"id": 3}]
    assert read(tmp_path, "c.jsonl.gz", gzip.compress(b'{"id": 1}\n' * 9)[:-9])[-1].startswith("cannot be read")
    assert read(tmp_path, "d.json.gz", b"not compressed") == ["cannot be read as json"]
    assert read(tmp_path, "f.jsonl", b'{"text": "a\\ud83db"}') == [{"text": "a\N{REPLACEMENT CHARACTER}b"}]
    assert read(tmp_path, "e.json", b"") == []


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_record_that_is_too_long_is_refused_and_the_next_is_read(tmp_path, monkeypatch, name):
    for module in (opened, records):
        monkeypatch.setattr(module, "MAX_CHARACTERS", 1_000)
    content = b'{"id": 1}\n{"text": "' + b"x" * 5_000 + b'"}\n{"id": 3}\n'
    found = read(tmp_path, name, content)
    assert found == [{"id": 1}, records._TOO_LONG, {"id": 3}]


def test_a_large_array_is_streamed_up_to_a_record_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_READ_AT_ONCE", 100)
    monkeypatch.setattr(records, "MAX_CHARACTERS", 1_000)
    content = json.dumps([ONE, TWO, {"text": "x" * 5_000}, ONE], indent=1).encode()
    assert read(tmp_path, "a.json", content) == [ONE, TWO, "is no JSON"]
    assert read(tmp_path, "b.json", json.dumps(CHAT * 9, indent=1).encode()) == [{"messages": CHAT * 9}]
