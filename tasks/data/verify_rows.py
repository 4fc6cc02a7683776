"""Verify stored rows: before anything is decided that rests on them."""

from collections.abc import Iterable

from infra.context import replay_store
from schemas.records import Reference

_TABLE = "transitions"


def verify_rows(references: Iterable[Reference]) -> None:
    """Hold the rows of what was stored against their digests, byte by byte.

    Args:
        references: Those to trajectories that are rows as well say in which version of the table, by its `table_tag`.

    Raises:
        IntegrityError: they are not what was written.
        StorageError: they are not there.
    """
    replay_store().verify(_TABLE, {str(one.notes["table_tag"]) for one in references if "table_tag" in one.notes})
