"""Open log files: compressed or not, in any encoding of Unicode."""

import json
import lzma
from codecs import EncodedFile
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".lz4": "lz4", ".xz": "xz"}
_SIGNS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ": "xz",
}
"""Compressions by the first bytes of a file."""
_TEXT = b"{[ \t\r\n\xef"
"""Bytes with which an uncompressed file of JSON may begin."""
MAX_CHARACTERS = 2**26
"""Maximum length of a record that is read."""


def format_of(file: Path) -> str:
    """Return the suffix of a file without that of its compression, in lower case."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in _COMPRESSIONS), "")


def open_bytes(file: Path) -> IO[bytes]:
    """Open the content of a file, decompressed as its first bytes say, or else its last suffix."""
    compression = _compression_of(file)
    if not compression:
        return file.open("rb")
    if compression == "xz":
        return lzma.open(file)
    return cast(IO[bytes], pa.CompressedInputStream(pa.OSFile(str(file)), compression))


def _compression_of(file: Path) -> str:
    with file.open("rb") as content:
        begins = content.read(6)
    by_sign = next((compression for sign, compression in _SIGNS.items() if begins.startswith(sign)), "")
    is_text = begins[:1] in [bytes([one]) for one in _TEXT]
    return by_sign or ("" if is_text else _COMPRESSIONS.get(file.suffix.lower(), ""))


def open_text(file: Path) -> TextIOWrapper:
    """Open the text of a file, whose encoding its first bytes show; what is no text becomes a mark."""
    return TextIOWrapper(cast(Any, open_bytes(file)), encoding=_encoding_of(file), errors="replace", newline=None)


def open_utf8(file: Path) -> IO[bytes]:
    """Open the text of a file in UTF-8, without a mark of its encoding."""
    encoding = _encoding_of(file)
    content = open_bytes(file)
    return content if encoding == "utf-8" else cast(IO[bytes], EncodedFile(cast(Any, content), "utf-8", encoding))


def _encoding_of(file: Path) -> str:
    with open_bytes(file) as content:
        return json.detect_encoding(content.read(4))


def first_sign(content: IO[bytes]) -> bytes:
    """Return the first byte that is no blank."""
    while (sign := content.read(1)).isspace():
        pass
    return sign


def lines_in(text: TextIOWrapper) -> Iterator[str | None]:
    """Yield lines without their end; None in place of one that is longer than MAX_CHARACTERS, which is not kept."""
    while line := text.readline(MAX_CHARACTERS):
        if line.endswith("\n") or len(line) < MAX_CHARACTERS:
            yield line.rstrip("\n")
            continue
        while (rest := text.readline(MAX_CHARACTERS)) and not rest.endswith("\n"):
            pass
        yield None
