"""Whether there is a browser to play MiniWoB++ in."""

import pytest

from infra.environments.miniwob.browser import require_browser
from schemas.errors import InputError


def require_chromium() -> None:
    """The test is skipped if there is none, and says how to get one."""
    try:
        require_browser()
    except InputError as missing:
        pytest.skip(str(missing))
