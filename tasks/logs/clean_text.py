"""Text of a log without what no store or model takes: colours, control characters, template tokens, and what is too long."""

import re
from collections.abc import Callable

from schemas.state_text import state_of
from schemas.tables import MAX_TEXT_BYTES, without_template

_NO_TEXT = "\N{REPLACEMENT CHARACTER}"
_ODD = re.compile(f"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff<\\[{_NO_TEXT}]")
"""Characters of which one is in all that is replaced or counted."""
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, which JSON can write and no text may hold."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_LEFT_OUT = "\n[...]\n"
CLEANED, CUT, MARKED = (
    "texts with control characters or template tokens, which were replaced",
    "texts that were cut in their middle",
    f"texts with {_NO_TEXT}, which stands for bytes or half characters that are no text",
)


def clean(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text with plain line breaks, without colours of a terminal, and with template tokens defused.

    Returns:
        The text, and remarks on what is odd in it beside line breaks.
    """
    if not _ODD.search(text):  # one search instead of six
        return text, ()
    plain = _SURROGATE.sub(_NO_TEXT, text.replace("\r\n", "\n").replace("\r", "\n"))
    cleaned = without_template(_ANSI.sub("", plain))
    remarks = {CLEANED: cleaned != plain, MARKED: _NO_TEXT in cleaned}
    return cleaned, tuple(remark for remark, holds in remarks.items() if holds)


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
