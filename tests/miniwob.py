"""A browser to play MiniWoB++ in: whether there is one, and one in haste."""

import pytest
from selenium.webdriver import ChromeOptions

from infra.environments.miniwob import browser
from infra.environments.miniwob.page import MiniwobPage
from schemas.errors import InputError


def require_chromium() -> None:
    """The test is skipped if there is none, and says how to get one."""
    try:
        browser.require_browser()
    except InputError as missing:
        pytest.skip(str(missing))


def early_page() -> MiniwobPage:
    """A page whose browser says that it is loaded once it begins to be; for a process of its own, which stays so."""
    ordered = browser._options
    browser._options = lambda path: _in_haste(ordered(path))
    return MiniwobPage()


def _in_haste(options: ChromeOptions) -> ChromeOptions:
    options.page_load_strategy = "none"
    return options
