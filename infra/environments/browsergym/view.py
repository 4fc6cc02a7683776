"""Accessibility tree of a page as an abstract state: a line `[id] role: name` each (paper, section 4.1, WebArena).

    - page: http://shop/cart
    - [a46] button: Checkout
    - [b12] textbox: Search, value 'shoes', focused
    - [b17] paragraph: 19.99 dollars

BrowserGym gives no ids to texts: each text goes to the nearest element around it that has one. Elements that can be
neither read nor acted on are dropped. Actions are BrowserGym's calls: `click('a46')`, `fill('b12', 'boots')`.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from schemas.state_text import text_of

ACTIONS = {
    "noop": (0, 0, 1),
    "send_msg_to_user": (0, 1, 1),
    "scroll": (0, 2, 2),
    "fill": (1, 2, 2),
    "select_option": (1, 2, 2),
    "click": (1, 1, 3),
    "dblclick": (1, 1, 3),
    "hover": (1, 1, 1),
    "press": (1, 2, 2),
    "focus": (1, 1, 1),
    "clear": (1, 1, 1),
    "drag_and_drop": (2, 2, 2),
    "upload_file": (1, 2, 2),
    "goto": (0, 1, 1),
    "go_back": (0, 0, 0),
    "go_forward": (0, 0, 0),
    "new_tab": (0, 0, 0),
    "tab_close": (0, 0, 0),
    "tab_focus": (0, 1, 1),
}
"""BrowserGym's calls, the paper's thirteen first.

Values: number of leading arguments that are elements, then the minimum and maximum number of arguments.
"""
_READ = "StaticText"
_NOT_SHOWN = ("none", "generic", "InlineTextBox", "RootWebArea", "LineBreak")
_FLAGS = ("checked", "expanded", "focused", "selected", "disabled")
_MAX_CHARACTERS = 500
"""Maximum length of an action."""


def state_text(url: str, tree: Mapping[str, Any], error: str) -> str:
    """Return the state of a page.

    Args:
        url: Address of the page.
        tree: Chrome's nodes, with BrowserGym's ids.
        error: Error of the last action; empty if there was none.
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
    """Return the texts of the page, by the id of the nearest shown node around each that has one."""
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


def is_action(text: str, tree: Mapping[str, Any], uploads: Path | None = None) -> bool:
    """Return whether a text is one of the calls, with literal arguments, about elements of the page.

    Args:
        text: Text that a policy wrote.
        tree: Chrome's nodes, with BrowserGym's ids.
        uploads: Folder whose files may be uploaded. Without it none may, since a policy could choose any file of ours.
    """
    call = _call(text)
    if call is None or call[0] not in ACTIONS:
        return False
    name, arguments = call
    num_elements, least, most = ACTIONS[name]
    known = {node.get("browsergym_id") for node in tree["nodes"]}
    fits = least <= len(arguments) <= most and all(_is_one_of(one, known) for one in arguments[:num_elements])
    return fits and (name != "upload_file" or _is_in(uploads, arguments[1]))


def _is_in(folder: Path | None, file: Any) -> bool:
    if folder is None or not isinstance(file, str) or not file.isprintable():
        return False
    return Path(file).resolve().is_relative_to(folder.resolve())


def _is_one_of(argument: Any, known: Set[str | None]) -> bool:
    return isinstance(argument, str) and argument in known


def _call(text: str) -> tuple[str, list[Any]] | None:
    if len(text) > _MAX_CHARACTERS or not text.isprintable():
        return None
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return None
        named = {one.arg: one.value for one in call.keywords}
        given = [ast.literal_eval(one) for one in (*call.args, *named.values())]
    except (SyntaxError, ValueError, TypeError):  # TypeError: a list as a key
        return None
    return None if None in named else (call.func.id, given)
