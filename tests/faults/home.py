"""A home of its own for each fault."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from infra import doors

_VARIABLE = "DREAMGYM_HOME"


@contextmanager
def own_home() -> Iterator[str]:
    """A folder on which every door opens while it lasts."""
    before = os.environ.get(_VARIABLE)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        open_doors_on(home)
        try:
            yield home
        finally:
            open_doors_on(before)


def open_doors_on(home: str | None) -> None:
    """Let every door of this process open on a home, or on the default one."""
    os.environ.pop(_VARIABLE, None)
    if home is not None:
        os.environ[_VARIABLE] = home
    for door in (doors.settings, doors.blobs, doors.objects, doors.ledger, doors.registry, doors.replay_store):
        door.cache_clear()
