"""A page's accessibility tree as an abstract state: a line `[id] role: name` each (paper, section 4.1 and its WebArena mapping).

    - page: http://shop/cart
    - [a46] button: Checkout
    - [b12] textbox: Search, value 'shoes', focused
    - [b17] paragraph: 19.99 dollars

BrowserGym gives texts no ids: each is told of the nearest thing around it that has one. What can neither be read nor acted on is
dropped. Actions are BrowserGym's calls: `click('a46')`, `fill('b12', 'boots')`.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
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
_READ = "StaticText"
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
    texts = _texts(nodes)
    for node in nodes:
        bid, role = node.get("browsergym_id"), _text(node, "role")
        read = texts.get(bid, [])
        if bid is not None and not node.get("ignored") and (read or role not in _NOT_SHOWN):
            yield f"[{bid}] {role}", ", ".join(_said(node, read)) or "(empty)"


def _said(node: Mapping[str, Any], read: Sequence[str]) -> Iterator[str]:
    name, value = _text(node, "name"), _text(node, "value")
    if name:
        yield name
    yield from (one for one in read if one not in name)
    if value:
        yield f"value {value!r}"
    properties = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
    yield from (flag for flag in _FLAGS if properties.get(flag) in (True, "true", "mixed"))


def _texts(nodes: Sequence[Mapping[str, Any]]) -> dict[str | None, list[str]]:
    """What stands on the page, by the id of the nearest shown node around it that has one."""
    by_id = {node["nodeId"]: node for node in nodes if "nodeId" in node}
    texts: dict[str | None, list[str]] = {}
    for node in nodes:
        if _text(node, "role") != _READ or node.get("ignored"):
            continue
        around: Mapping[str, Any] | None = node
        while around is not None and (around.get("browsergym_id") is None or around.get("ignored")):
            around = by_id.get(around.get("parentId"))
        if around is not None and around is not node:
            texts.setdefault(around["browsergym_id"], []).append(_text(node, "name"))
    return texts


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
    return least <= len(arguments) <= most and (name not in _ON_AN_ELEMENT or _is_one_of(arguments[0], known))


def _is_one_of(argument: Any, known: Set[str | None]) -> bool:
    return isinstance(argument, str) and argument in known


def _call(text: str) -> tuple[str, list[Any]] | None:
    if len(text) > _MAX_CHARACTERS or not text.isprintable():
        return None
    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords:
            return call.func.id, [ast.literal_eval(one) for one in call.args]
    except (SyntaxError, ValueError, TypeError):  # the last for a list as a key
        pass
    return None
