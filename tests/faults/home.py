"""Home of its own for each fault."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fresh import HOME_VARIABLE, reset_context


@contextmanager
def own_home() -> Iterator[str]:
    """Yield a temporary folder that is the home of this process meanwhile."""
    before = os.environ.get(HOME_VARIABLE)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        open_doors_on(home)
        try:
            yield home
        finally:
            open_doors_on(before)


def open_doors_on(home: str | None) -> None:
    """Set the home of this process, or return to the default one."""
    os.environ.pop(HOME_VARIABLE, None)
    if home is not None:
        os.environ[HOME_VARIABLE] = home
    reset_context()
