"""Browsers for tests of MiniWoB++: a check that there is one, and one that reports pages as loaded too early."""

import pytest
from selenium.webdriver import ChromeOptions

from infra.environments.miniwob import browser
from infra.environments.miniwob.page import MiniwobPage
from schemas.errors import InputError


def require_chromium() -> None:
    """Skip the test if there is no browser, and say how to get one."""
    try:
        browser.require_browser()
    except InputError as missing:
        pytest.skip(str(missing))


def early_page() -> MiniwobPage:
    """Return a page whose browser reports it as loaded once it begins to load.

    The changed browser options stay in effect, so call this in a process of its own.
    """
    ordered = browser._options
    browser._options = lambda path: _in_haste(ordered(path))
    return MiniwobPage()


def _in_haste(options: ChromeOptions) -> ChromeOptions:
    options.page_load_strategy = "none"
    return options
