r"""Web page as an abstract state: a line `[id] role: "name"` for all that can be read or acted on (paper, section 4.1).

    - [6] label: "Username"
    - [7] textbox: "keneth", focused
    - [9] checkbox: "remember me", unchecked
    - [11] button: "Login"

Actions are `click [11]`, `type [7] "keneth"` (in place of the present text), `select [9] "France"` and `press enter`. A
text that is no action, or about no element of the page, does nothing. Names are quoted, as in most instructions: to a
tokenizer, a word after a blank differs from the same word after a quotation mark, and a small model finds only what is
the same.

Differs: the paper takes a page's whole accessibility tree and lets a model drop what is irrelevant; here all text
remains, and elements with neither text nor use are dropped by rule.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.state_text import text_of

_EMPTY = "(empty)"
KEYS = ("enter", "tab", "escape", "space", "backspace", "up", "down", "left", "right")
MAX_TYPED = 200
"""Maximum number of characters to type; a longer text is no action."""
_LAST_TYPED = "\uffff"
"""Last character that ChromeDriver can type."""
_NOTHING_TO_SEE = {"[0] text": "nothing"}
_ROLES = {
    "a": "link",
    "button": "button",
    "input_button": "button",
    "input_submit": "button",
    "input_checkbox": "checkbox",
    "input_radio": "radio",
    "input_text": "textbox",
    "input_password": "textbox",
    "textarea": "textbox",
    "select": "combobox",
    "label": "label",
    "h3": "heading",
}
"""Roles by tag, as MiniWoB++ calls it."""
_ROLES_BY_CLASS = {"alink": "link", "folder": "folder", "file": "file", "ui-menu-item-wrapper": "option"}
_NOT_SHOWN = "ui-helper-hidden-accessible"
"""Class of texts for screen readers, which say nothing new."""
_ONE_THING = ("link", "button")
"""Roles whose name is all the text inside."""
TICKED = ("checkbox", "radio")
_VALUE = re.compile(r'"(?P<name>.*?)"(?: of "(?P<options>.*)")?(?:, (?:un)?checked)?(?:, focused)?')
"""Pattern of Element.value."""
_BETWEEN_OPTIONS = '" | "'
_ACTION = re.compile(r'(?:(click) \[(\d+)\]|(type|select) \[(\d+)\] "(.+)"|(press) (.+))')


@dataclass(frozen=True, slots=True)
class Element:
    """Element of a page."""

    ref: int
    role: str
    name: str
    """Text of the element, or its content."""
    ticked: bool = False
    focused: bool = False
    options: tuple[str, ...] = ()
    """Options that can be selected."""

    @property
    def value(self) -> str:
        """Value of the element's line in a state."""
        parts = [quoted(self.name)]
        if self.options:
            parts = [f'{parts[0]} of "{_BETWEEN_OPTIONS.join(self.options)}"']
        if self.role in TICKED:
            parts.append("checked" if self.ticked else "unchecked")
        return ", ".join([*parts, "focused"] if self.focused else parts)


@dataclass(frozen=True, slots=True)
class Action:
    """Action on a page."""

    verb: str
    ref: int = 0
    text: str = ""


Node = Mapping[str, Any]
"""Node of a page, as `core.getDOMInfo` of MiniWoB++ returns it; a combobox also has its `options`."""


def elements_of(node: Node) -> Iterator[Element]:
    """Yield all that can be read or acted on in a part of a page, in its order."""
    role, ref, children = _role(node), int(node["ref"]), node["children"]
    if _NOT_SHOWN in _classes(node):
        return
    focused = bool(node.get("focused")) and role != "text"
    if role == "textbox":
        yield Element(ref, role, _joined([str(node["value"])]), focused=focused)
    elif role == "combobox":
        yield Element(ref, role, str(node["value"]), focused=focused, options=tuple(node["options"]))
    elif role in _ONE_THING or not children or all(child["tag"] == "t" for child in children):
        if name := _joined(_texts(node)) or (" ".join(_classes(node)[-1:]) if role in _ONE_THING else ""):
            yield Element(ref, role, name, focused=focused)
    else:
        yield from _inside(node)


def _inside(node: Node) -> Iterator[Element]:
    """Yield the elements inside a node, and its own text, which names the checkboxes there if it has any."""
    own = _joined(str(child["text"]) for child in node["children"] if child["tag"] == "t")
    ticked = [child for child in node["children"] if _role(child) in TICKED]
    if own and not ticked:
        yield Element(int(node["ref"]), _role(node), own)
    for child in node["children"]:
        if child in ticked:
            yield Element(int(child["ref"]), _role(child), own, bool(child["value"]), bool(child.get("focused")))
        elif child["tag"] != "t":
            yield from elements_of(child)


def _role(node: Node) -> str:
    by_class = (_ROLES_BY_CLASS.get(one) for one in _classes(node))
    return next(filter(None, by_class), _ROLES.get(str(node["tag"]).lower(), "text"))


def _classes(node: Node) -> list[str]:
    """Return the classes of a node; the last is the most specific, and describes an element without text."""
    return str(node.get("classes", "")).split()


def _texts(node: Node) -> Iterator[str]:
    if "text" in node:
        yield str(node["text"])
    for child in node["children"]:
        yield from _texts(child)


def _joined(texts: Iterator[str] | Sequence[str]) -> str:
    return " ".join(" ".join(texts).split())


def state_text(elements: Sequence[Element]) -> str:
    """Return the state of a page with these elements."""
    return text_of({f"[{one.ref}] {one.role}": one.value for one in elements} or _NOTHING_TO_SEE)


def role_of(line: str) -> str:
    """Return the role of an element from the name of its line in a state."""
    return line.partition("] ")[2]


def quoted(name: str) -> str:
    """Return a name as it appears in a line."""
    return f'"{name}"' if name else _EMPTY


def name_in(value: str) -> str:
    """Return the name of an element from the value of its line; empty if it has none."""
    match = _VALUE.fullmatch(value)
    return match["name"] if match else ""


def options_in(value: str) -> list[str]:
    """Return the options of a combobox from the value of its line."""
    match = _VALUE.fullmatch(value)
    return match["options"].split(_BETWEEN_OPTIONS) if match and match["options"] else []


def put(verb: str, thing: str, text: str) -> str:
    """Return the action that types or selects a text in an element, e.g. `[7]`."""
    return f'{verb} {thing} "{text}"'


def text_in(action: str) -> str:
    """Return the text that an action types or selects; empty if there is none."""
    match = _ACTION.fullmatch(action)
    return (match[5] or "") if match else ""


def action_of(text: str, elements: Sequence[Element]) -> Action | None:
    """Return the action in a text; None if it is none, or impossible on a page with these elements."""
    match = _ACTION.fullmatch(text)
    if match is None or not text.isprintable():
        return None
    if match[6]:
        return Action("press", text=match[7]) if match[7] in KEYS else None
    target = next((one for one in elements if str(one.ref) == (match[2] or match[4])), None)
    if target is None:
        return None
    action = Action(match[1] or match[3], target.ref, match[5] or "")
    return action if _fits(action, target) else None


def _fits(action: Action, target: Element) -> bool:
    if action.verb == "type":
        return target.role == "textbox" and _can_be_typed(action.text)
    return action.verb == "click" or action.text in target.options


def _can_be_typed(text: str) -> bool:
    return len(text) <= MAX_TYPED and max(text, default="") <= _LAST_TYPED


def clicks(elements: Sequence[Element]) -> list[str]:
    """Return every click, and every option that is not selected yet."""
    chosen = [put("select", f"[{one.ref}]", option) for one in elements for option in one.options if option != one.name]
    return [f"click [{one.ref}]" for one in elements] + chosen
