"""MiniWoB++ tasks, one after another on a page of their own in this process's browser."""

import time
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from infra.environments.miniwob.browser import Browser
from infra.environments.miniwob.experts import EXPERTS, Page
from infra.environments.miniwob.view import Action, Element, action_of, clicks, elements_of, state_text
from infra.environments.processes import Seen
from infra.environments.single_games import Outcome
from schemas.errors import EnvironmentUnavailable

_LOADED = "return document.readyState === 'complete' && 'core' in window"
"""Check of a loaded page: on a busy machine, ChromeDriver may report one whose scripts did not run yet."""
_BEGIN = """
if (window.jQuery) jQuery.fx.off = true;  // nothing moves while nobody looks
core.EPISODE_MAX_TIME = 24 * 60 * 60 * 1000;  // of ten seconds, most would pass while a model thinks
Math.seedrandom(arguments[0]);
core.setDataMode(arguments[1]);
core.startEpisodeReal();
"""
_LOOK = """
const withOptions = node => {
  const element = core.previousDOMInfo[node.ref];
  if (element instanceof HTMLSelectElement) {
    node.value = element.value;
    node.options = Array.from(element.options, one => one.text);
  }
  node.children.forEach(withOptions);
  return node;
};
return {
  asked: core.getUtterance(), page: withOptions(core.getDOMInfo()),
  done: WOB_DONE_GLOBAL, reward: WOB_RAW_REWARD_GLOBAL
};
"""
_SELECT = """
const box = core.previousDOMInfo[arguments[0]];
box.selectedIndex = Array.from(box.options).findIndex(one => one.text === arguments[1]);
for (const event of ['input', 'change']) box.dispatchEvent(new Event(event, {bubbles: true}));
"""
_READY_WITHIN_S = 5.0
_AT_A_LOSS = "press escape"


@lru_cache(maxsize=1)
def _browser() -> Browser:
    return Browser()


def _url(name: str) -> str:
    return Path(str(files("miniwob"))).joinpath("html", "miniwob", f"{name}.html").as_uri()


class MiniwobPage:
    """Player of tasks, with an expert."""

    def __init__(self) -> None:
        """Open an empty window."""
        self._window = _browser().new_window()

    def reset(self, which: tuple[str, str, str]) -> Seen:
        """Begin a task on a fresh page.

        Args:
            which: Name, random seed and data mode of the task.
        """
        self._name, seed, mode = which
        self._earlier: list[Element] = []
        _browser().go(self._window, _url(self._name))
        self._await(_LOADED)
        self._run(_BEGIN, seed, mode)
        self._await("return WOB_TASK_READY")
        return self._look()

    def step(self, action: str) -> Seen:
        """Take an action. An impossible action changes nothing."""
        to_original = action_of(action, self._elements)
        if to_original is None:
            return self._seen
        self._do(to_original)
        self._earlier += [one for one in self._elements if one.ref == to_original.ref]
        return self._look()

    def close(self) -> None:
        """Close the window."""
        _browser().close(self._window)

    def _do(self, action: Action) -> None:
        if action.verb == "click":
            self._run("return core.elementClick(arguments[0])", action.ref)
        elif action.verb == "type":
            _browser().type(self._window, f"return core.previousDOMInfo[{action.ref}]", action.text)
        elif action.verb == "select":
            self._run(_SELECT, action.ref, action.text)
        else:
            _browser().press(self._window, action.text)

    def _look(self) -> Seen:
        """Return what the page shows now; after the end, what it showed before."""
        looked = self._run(_LOOK)
        if looked["done"]:
            outcome: Outcome = "success" if looked["reward"] == 1 else "failure"
            self._seen = Seen(self._seen.said, (), outcome=outcome)
            return self._seen
        self._elements = list(elements_of(looked["page"]))
        said, asked = state_text(self._elements), looked["asked"]
        self._seen = Seen(said, tuple(clicks(self._elements)), self._expert(asked), asked=asked)
        return self._seen

    def _expert(self, asked: str) -> str:
        try:
            fields = dict(_fields(self._name, asked))
            return EXPERTS[self._name](Page(fields, self._elements, self._earlier))
        except (LookupError, ValueError):  # earlier actions led to where its rule does not apply
            return _AT_A_LOSS

    def _await(self, script: str) -> None:
        deadline = time.monotonic() + _READY_WITHIN_S
        while not self._run(script):
            if time.monotonic() > deadline:
                raise EnvironmentUnavailable(f"{self._name} is not ready after {_READY_WITHIN_S:.0f} s")
            time.sleep(0.02)

    def _run(self, script: str, *arguments: Any) -> Any:
        return _browser().run(self._window, script, *arguments)


def _fields(name: str, asked: str) -> Any:
    from miniwob.fields import get_field_extractor

    return get_field_extractor(name)(asked)
