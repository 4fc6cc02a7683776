"""Headless Chromium driven by ChromeDriver: one for all pages of a process, which ends with it.

Only this file imports Selenium. Pages cannot reach any network.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import ElementNotInteractableException, WebDriverException
from selenium.webdriver.chrome.remote_connection import ChromeRemoteConnection
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.client_config import ClientConfig
from selenium.webdriver.remote.webelement import WebElement
from urllib3.exceptions import HTTPError

from schemas.errors import EnvironmentUnavailable, InputError

_DRIVERS, _BROWSERS = ("chromedriver",), ("chromium", "chromium-browser", "google-chrome", "chrome")
_KEYS = {"up": Keys.ARROW_UP, "down": Keys.ARROW_DOWN, "left": Keys.ARROW_LEFT, "right": Keys.ARROW_RIGHT}
"""Selenium's keys that have another name than ours; the others have the same."""
_Answer = TypeVar("_Answer")
_ANSWER_S = 15
_SCRIPT_S = 10
_READY = "started successfully on port "
_OPTIONS = (
    *("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=600,600"),
    "--process-per-site",  # many pages in one process: a hundred take little more memory than one
    *("--disable-background-timer-throttling", "--disable-renderer-backgrounding"),
    *("--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"),
)


def require_browser() -> tuple[str, str]:
    """Return the paths of driver and browser.

    Raises:
        InputError: If one of them is not installed.
    """
    driver, browser = (next(filter(None, map(shutil.which, names)), None) for names in (_DRIVERS, _BROWSERS))
    if driver is None or browser is None:
        raise InputError("environment 'miniwob' needs a browser: apt-get install chromium chromium-driver")
    return driver, browser


class Browser:
    """Browser with a window for each page."""

    def __init__(self) -> None:
        """Start the driver and the browser.

        Raises:
            EnvironmentUnavailable: If it does not start.
        """
        driver, browser = require_browser()
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "infra.running.guard", driver, "--port=0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        address = f"http://127.0.0.1:{self._port()}"
        config = ClientConfig(remote_server_addr=address, timeout=_ANSWER_S)
        connection = ChromeRemoteConnection(address, client_config=config)
        self._driver = webdriver.Remote(connection, options=_options(browser))
        self._driver.set_script_timeout(_SCRIPT_S)
        self._driver.set_page_load_timeout(_ANSWER_S)
        self._first_window = self._window = self._driver.current_window_handle
        self._lost = ""

    def _port(self) -> int:
        for line in self._process.stdout or ():
            if _READY in line:
                return int(line.rpartition(_READY)[2].strip(" .\n"))
        raise EnvironmentUnavailable("ChromeDriver does not start")

    def new_window(self) -> str:
        """Open an empty window and return its handle."""
        return self._in(self._first_window, self._opened)

    def _opened(self) -> str:
        self._driver.switch_to.new_window("tab")
        as_if_in_front = {"enabled": True}
        self._driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", as_if_in_front)
        self._window = self._driver.current_window_handle
        return self._window

    def close(self, window: str) -> None:
        """Close a window."""
        self._in(window, self._driver.close)

    def go(self, window: str, url: str) -> None:
        """Load a page and wait until it is complete."""
        self._in(window, lambda: self._driver.get(url))

    def run(self, window: str, script: str, *arguments: Any) -> Any:
        """Run JavaScript and return its result."""
        return self._in(window, lambda: self._driver.execute_script(script, *arguments))

    def type(self, window: str, element: str, text: str) -> None:
        """Type a text into an element, which JavaScript finds, in place of its present text."""
        self._in(window, lambda: _type(self._driver.execute_script(element), text))

    def press(self, window: str, key: str) -> None:
        """Press a key, e.g. `enter`, wherever the focus is."""
        chain = ActionChains(self._driver, duration=0).send_keys(_KEYS.get(key) or getattr(Keys, key.upper()))
        self._in(window, chain.perform)

    def _in(self, window: str, what: Callable[[], _Answer]) -> _Answer:
        """Run a call in a window. After a driver has once not answered, every call fails at once.

        Raises:
            EnvironmentUnavailable: If the driver does not answer, or the page is broken.
        """
        if self._lost:
            raise EnvironmentUnavailable(self._lost)
        try:
            if window != self._window:  # among 64 windows, a switch takes longer than a click
                self._driver.switch_to.window(window)
                self._window = window
            return what()
        except HTTPError as error:
            self._lost = f"the browser does not answer: {type(error).__name__}"
            self._process.terminate()
            raise EnvironmentUnavailable(self._lost) from error
        except WebDriverException as error:
            said = (error.msg or type(error).__name__).splitlines()[0]
            raise EnvironmentUnavailable(f"the page cannot be played: {said}") from error


def _type(element: WebElement, text: str) -> None:
    with suppress(ElementNotInteractableException):  # disabled before, or by an effect of the focus
        element.send_keys(Keys.CONTROL, "a")
        element.send_keys(text)


def _options(browser: str) -> webdriver.ChromeOptions:
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for option in _OPTIONS:
        options.add_argument(option)
    if os.geteuid() == 0:  # Chromium's sandbox refuses to work for root
        options.add_argument("--no-sandbox")
    return options
