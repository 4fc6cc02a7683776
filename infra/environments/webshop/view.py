"""Page of the shop as an abstract state: its text, and the actions that it accepts (paper, section 4.1).

    - saw: Back to Search | Page 1 (Total results: 50) | B09KP78G37 | Red dress | $24.99
    - search: a search bar
    - click: back to search | next > | b09kp78g37

Actions are `search[red dress]` and `click[next >]`. The instruction is part of the task and left out here.
"""

import re

from infra.environments.webshop.server import Page
from schemas.state_text import text_of

_BETWEEN_PARTS = "[SEP]"
_INSTRUCTION = "Instruction:"
_DIVIDED_BY = " | "
_ACTION = re.compile(r"^(search|click)\[(.+)\]$")
NAVIGATION = ("back to search", "< prev", "next >", "description", "features", "reviews", "attributes", "buy now")
"""Names to click that are neither products nor options of one."""
_PRODUCT = re.compile(r"^[a-z0-9]{10}$")


def instruction_on(page: Page) -> str:
    """Return the instruction on a page; empty if it has none."""
    parts = _parts(page)
    return parts[parts.index(_INSTRUCTION) + 1] if _INSTRUCTION in parts[:-1] else ""


def state_text(page: Page) -> str:
    """Return the state of a page."""
    said = [part for part in _parts(page) if part not in (_INSTRUCTION, instruction_on(page))]
    lines = {"saw": _DIVIDED_BY.join(said) or "nothing"}
    if page.has_search_bar:
        lines["search"] = "a search bar"
    if page.clickables:
        lines["click"] = _DIVIDED_BY.join(" ".join(one.split()) for one in page.clickables)
    return text_of(lines)


def _parts(page: Page) -> list[str]:
    parts = (" ".join(part.split()) for part in page.text.split(_BETWEEN_PARTS))
    return [part for part in parts if part]


def clickables(lines: dict[str, str]) -> list[str]:
    """Return the names that can be clicked in a state."""
    return lines["click"].split(_DIVIDED_BY) if "click" in lines else []


def products(lines: dict[str, str]) -> list[str]:
    """Return the products among the names that can be clicked."""
    return [one for one in clickables(lines) if _PRODUCT.match(one)]


def options(lines: dict[str, str]) -> list[str]:
    """Return the options of the shown product among the names that can be clicked."""
    return [one for one in clickables(lines) if one not in NAVIGATION and not _PRODUCT.match(one)]


def accepts(lines: dict[str, str], action: str) -> bool:
    """Return whether the shop reacts to an action."""
    match = _ACTION.match(action)
    if match is None:
        return False
    return "search" in lines if match[1] == "search" else match[2] in clickables(lines)
