"""Verify stored rows before a decision rests on them."""

from collections.abc import Iterable

from infra.context import replay_store
from schemas.records import Reference

_TABLE = "transitions"


def verify_rows(references: Iterable[Reference]) -> None:
    """Verify the rows of stored trajectories against their digests, byte by byte.

    Args:
        references: References; the `table_tag` of one to trajectories names the table version that holds their rows.

    Raises:
        IntegrityError: rows are not what was written.
        StorageError: rows are missing.
    """
    replay_store().verify(_TABLE, {str(one.notes["table_tag"]) for one in references if "table_tag" in one.notes})
