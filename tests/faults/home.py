"""A home of its own for each fault."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fresh import HOME_VARIABLE, reset_context


@contextmanager
def own_home() -> Iterator[str]:
    """A folder on which every door opens while it lasts."""
    before = os.environ.get(HOME_VARIABLE)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        open_doors_on(home)
        try:
            yield home
        finally:
            open_doors_on(before)


def open_doors_on(home: str | None) -> None:
    """Let every door of this process open on a home, or on the default one."""
    os.environ.pop(HOME_VARIABLE, None)
    if home is not None:
        os.environ[HOME_VARIABLE] = home
    reset_context()
