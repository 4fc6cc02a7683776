"""Port of kinds of logs: each names itself, says which parts of an episode a record holds, and returns its conversation.

A kind is a module, or an object, with the members of `LogKind`. Other packages add theirs as entry points of the group
`dreamgym.log_kinds`; the name of an entry point is what `format` of a mapping takes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from tasks.logs.shapes.in_words import Message

WHOLE = ""
"""Name of an episode that one part holds completely."""
NOT_UNDERSTOOD = (KeyError, TypeError, AttributeError, ValueError)
"""Errors raised by a malformed record."""
UNREAD = "a part that cannot be read, which was left out"

Part = tuple[str, dict[str, Any]]
"""Name of an episode, and what a record holds of it."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded episode, as a conversation."""

    messages: list[Message]
    """Messages in any shape of `tasks/logs/shapes`."""
    fields: dict[str, Any]
    """All else that is known of the episode: names, instruction, verdicts."""
    remarks: tuple[str, ...] = ()
    """Contradictions, and what had to be left out."""
    reason: str = ""
    """Why the episode is refused though others of its record or file are not; empty: it is not."""


class LogKind(Protocol):
    """Kind of logs."""

    @property
    def TITLE(self) -> str:
        """Name in the plural, in words."""
        ...

    @property
    def SPANS_FILES(self) -> bool:
        """Whether the parts of an episode may be spread over files; otherwise names of episodes hold within a file."""
        ...

    def recognises(self, record: dict[str, Any], /) -> bool:
        """Return whether a record is of this kind; it may hold anything."""
        ...

    def parts_of(self, record: dict[str, Any], /) -> Iterable[Part]:
        """Return the parts of episodes in a record.

        Raises:
            KeyError, TypeError, AttributeError, ValueError: the record is malformed.
        """
        ...

    def recorded(self, parts: list[dict[str, Any]], /) -> Iterable[Recorded]:
        """Return the episodes in parts of one name, which are in the order in which they came; mostly one.

        Raises:
            KeyError, TypeError, AttributeError, ValueError: the parts are malformed, or hold no conversation.
        """
        ...
