"""Text of a log without what no store or model takes: colours, control characters, template tokens, and what is too long."""

import re
from collections.abc import Callable

from schemas.state_text import state_of
from schemas.tables import MAX_TEXT_BYTES, without_template

_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff<\\[]")
"""Characters of which one is in all that is replaced."""
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, which JSON can write and no text may hold."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_LEFT_OUT = "\n[...]\n"
CLEANED, CUT = (
    "texts with control characters or template tokens, which were replaced",
    "texts that were cut in their middle",
)


def clean(text: str) -> tuple[str, str]:
    """Return a text with plain line breaks, without colours of a terminal, and with template tokens defused.

    Returns:
        The text, and what was replaced in it beside line breaks; empty if nothing was.
    """
    if not _ODD.search(text):  # one search instead of six
        return text, ""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    cleaned = without_template(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _ANSI.sub("", plain)))
    return cleaned, "" if cleaned == plain else CLEANED


def short_state(text: str, line: str) -> tuple[str, bool]:
    """Return a text as a state that tables take, and whether its middle had to be left out.

    Args:
        text: What was seen.
        line: Name of the single line that it becomes; empty: its lines become numbered lines.
    """
    return _short(text, lambda kept: state_of(kept, line))


def short_text(text: str) -> tuple[str, bool]:
    """Return a text that tables take, and whether its middle had to be left out."""
    return _short(text, str)


def _short(text: str, written: Callable[[str], str]) -> tuple[str, bool]:
    found, kept, is_cut = written(text), text, False
    while (size := len(found.encode())) > MAX_TEXT_BYTES:
        length = int(len(kept) * 0.95 * MAX_TEXT_BYTES / size) // 2
        kept, is_cut = f"{kept[:length]}{_LEFT_OUT}{kept[-length:]}", True
        found = written(kept)
    return found, is_cut
