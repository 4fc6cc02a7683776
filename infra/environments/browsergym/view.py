"""A page's accessibility tree as an abstract state: a line `[id] role: name` each (paper, section 4.1 and its WebArena mapping).

    - page: http://shop/cart
    - [a46] button: Checkout
    - [b12] textbox: Search, value 'shoes', focused

What can neither be read nor acted on is dropped. Actions are BrowserGym's calls: `click('a46')`, `fill('b12', 'boots')`.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.state_text import text_of

ACTIONS = {
    "noop": (0, 1),
    "click": (1, 1),
    "dblclick": (1, 1),
    "hover": (1, 1),
    "fill": (2, 2),
    "select_option": (2, 2),
    "press": (2, 2),
    "scroll": (2, 2),
    "goto": (1, 1),
    "go_back": (0, 0),
    "go_forward": (0, 0),
    "tab_focus": (1, 1),
    "send_msg_to_user": (1, 1),
}
"""BrowserGym's calls, and how many arguments each has, at least and at most."""
_ON_AN_ELEMENT = ("click", "dblclick", "hover", "fill", "select_option", "press")
_NOT_SHOWN = ("none", "generic", "InlineTextBox", "RootWebArea", "LineBreak")
_FLAGS = ("checked", "expanded", "focused", "selected", "disabled")
_MAX_CHARACTERS = 500
"""Of an action."""


def state_text(url: str, tree: Mapping[str, Any], error: str) -> str:
    """The state of a page.

    Args:
        url: Its address.
        tree: Chrome's nodes, with BrowserGym's ids.
        error: What went wrong with the last action; empty: nothing.
    """
    lines = {"page": url} | ({"error": " ".join(error.split())} if error else {})
    return text_of(lines | dict(_lines(tree["nodes"])))


def _lines(nodes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        role, name = _text(node, "role"), _text(node, "name")
        bid = node.get("browsergym_id")
        if bid is None or node.get("ignored") or role in _NOT_SHOWN:
            continue
        properties = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
        flags = [flag for flag in _FLAGS if properties.get(flag) in (True, "true", "mixed")]
        value = _text(node, "value")
        said = [*([name] if name else []), *([f"value {value!r}"] if value else []), *flags]
        yield f"[{bid}] {role}", ", ".join(said) or "(empty)"


def _text(node: Mapping[str, Any], what: str) -> str:
    return " ".join(str(node.get(what, {}).get("value", "")).split())


def is_action(text: str, tree: Mapping[str, Any]) -> bool:
    """Whether a text is one of the calls, with plain arguments, about an element that is there."""
    call = _call(text)
    if call is None:
        return False
    name, arguments = call
    least, most = ACTIONS.get(name, (1, 0))
    known = {node.get("browsergym_id") for node in tree["nodes"]}
    return least <= len(arguments) <= most and (name not in _ON_AN_ELEMENT or arguments[0] in known)


def _call(text: str) -> tuple[str, list[Any]] | None:
    if len(text) > _MAX_CHARACTERS or not text.isprintable():
        return None
    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords:
            return call.func.id, [ast.literal_eval(one) for one in call.args]
    except (SyntaxError, ValueError):
        pass
    return None
