"""Rules that solve each task of MiniWoB++ from its instruction and from what the page shows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from infra.environments.miniwob.view import Element, put


@dataclass(frozen=True, slots=True)
class Page:
    """Input of an expert."""

    fields: dict[str, str]
    """Fields of the instruction."""
    elements: Sequence[Element]
    earlier: Sequence[Element]
    """Elements that were acted on, as they were then."""

    @property
    def target(self) -> str:
        """Field that most instructions have."""
        return self.fields["target"]

    def all(self, *roles: str) -> list[Element]:
        """Return all elements with these roles, in the order of the page."""
        return [one for one in self.elements if one.role in roles]

    def named(self, name: str, *roles: str) -> Element | None:
        """Return the first element with this name and one of these roles, ignoring case only if no name is the same."""
        found = self.all(*roles)
        same = [one for one in found if one.name == name] or [one for one in found if one.name.lower() == name.lower()]
        return same[0] if same else None

    def not_clicked(self, *roles: str) -> list[Element]:
        """Return the elements with these roles that were not clicked yet."""
        clicked = {one.ref for one in self.earlier}
        return [one for one in self.all(*roles) if one.ref not in clicked]

    @property
    def last(self) -> str:
        """Name of the element that was acted on last."""
        return self.earlier[-1].name if self.earlier else ""


Expert = Callable[[Page], str]
_RESULTS_PER_SHEET = 3


def _click(element: Element | None) -> str:
    """Return a click on an element, or a key press without effect if there is none."""
    return f"click [{element.ref}]" if element else "press escape"


def _type(box: Element, text: str) -> str:
    return put("type", f"[{box.ref}]", text)


def _button(page: Page, name: str = "submit") -> str:
    return _click(page.named(name, "button"))


def _filled(page: Page, texts: Sequence[str], submit: str = "submit") -> str:
    """Return the action that fills the next textbox, in the order of the page, or else clicks the button."""
    for box, text in zip(page.all("textbox"), texts, strict=False):
        if box.name != text:
            return _type(box, text)
    return _button(page, submit)


def _named_button(page: Page) -> str:
    return _button(page, page.target)


def _hidden_link(*covers: str) -> Expert:
    """Return an expert for a link that shows once the right cover is clicked: it tries them in turn."""

    def expert(page: Page) -> str:
        seen = page.named(page.target, "link")
        return _click(seen or next(iter(_covers(page, covers)), None))

    return expert


def _covers(page: Page, roles: Sequence[str]) -> list[Element]:
    return [one for one in page.not_clicked(*roles) if one.name.strip().startswith(("Tab #", "Section #"))]


def _section(page: Page) -> str:
    closed = page.not_clicked("heading")
    return _click(closed[0]) if closed else _button(page)


def _ticked(page: Page) -> str:
    wanted = {value for key, value in page.fields.items() if key.startswith("target")}
    wrong = [one for one in page.all("checkbox", "radio") if (one.name in wanted) != one.ticked]
    to_click = [one for one in wrong if one.role == "checkbox" or not one.ticked]
    return _click(to_click[0]) if to_click else _button(page)


def _text_in_case(page: Page) -> str:
    text = page.fields["text"]
    return _filled(page, [text.upper() if page.fields["case"] == "upper" else text.lower()])


def _login(submit: str) -> Expert:
    def expert(page: Page) -> str:
        if page.named("cancel", "button"):
            return _button(page, "cancel")
        return _filled(page, [page.fields["username"], page.fields["password"]], submit)

    return expert


def _nth_textbox(page: Page) -> str:
    return _click(page.all("textbox")[int(page.fields.get("target", "1")) - 1])


def _listed(page: Page) -> str:
    (box,) = page.all("combobox")
    return _button(page) if box.name == page.target else put("select", f"[{box.ref}]", page.target)


def _completed(page: Page) -> str:
    (box,) = page.all("textbox")
    start, end = page.fields["start"], page.fields.get("end", "")
    if box.name.startswith(start) and box.name.endswith(end) and box.name != start:
        return _button(page)
    offered = [one for one in page.all("option") if one.name.startswith(start) and one.name.endswith(end)]
    return _click(offered[0]) if offered else _type(box, start)


def _searched(page: Page) -> str:
    (box,) = page.all("textbox")
    if box.name != page.fields["query"]:
        return _type(box, page.fields["query"])
    results = [one for one in page.all("link") if not re.fullmatch(r"[<>\d]", one.name)]
    if not results:
        return _button(page, "Search")
    sheet, place = divmod(int(page.fields["rank"]) - 1, _RESULTS_PER_SHEET)
    turned = sheet == 0 or page.last == str(sheet + 1)
    return _click(results[place] if turned else page.named(str(sheet + 1), "link"))


def _in_tree(page: Page) -> str:
    seen = page.named(page.target, "folder", "file")
    return _click(seen or next(iter(page.not_clicked("folder")), None))


def _in_phone_book(page: Page) -> str:
    if page.named(page.fields["name"], "text", "heading") is None:
        return _click(page.named(">", "link"))
    kind = page.target.removesuffix(" number")
    details = [one for one in page.all("link") if one.name not in ("<", ">") and not one.name.isdigit()]
    return _click(details[("phone", "email", "address").index(kind)])


def _in_table(page: Page) -> str:
    cells = [one.name for one in page.all("text")]
    return _filled(page, [cells[cells.index(page.target) + 1]])


def _word(page: Page) -> str:
    words = " ".join(one.name for one in page.all("text")).split()
    return _filled(page, [re.sub("[^a-zA-Z]", "", words[int(page.target) - 1])])


def _sum(page: Page) -> str:
    first, sign, second = re.findall(r"\d+|[-+x]", page.all("text")[0].name)
    one, other = int(first), int(second)
    return _filled(page, [str({"+": one + other, "-": one - other, "x": one * other}[sign])])


EXPERTS: dict[str, Expert] = {
    "click-button": _named_button,
    "click-button-sequence": lambda page: _button(page, "TWO" if page.last == "ONE" else "ONE"),
    "click-checkboxes": _ticked,
    "click-checkboxes-large": _ticked,
    "click-collapsible-nodelay": _section,
    "click-collapsible-2-nodelay": _hidden_link("heading"),
    "click-dialog": lambda page: _button(page, "close"),
    "click-dialog-2": lambda page: _button(page, "close" if page.target == "x" else page.target),
    "click-link": lambda page: _click(page.named(page.target, "link")),
    "click-option": _ticked,
    "click-tab": lambda page: _click(page.named(f"Tab #{page.target}", "link")),
    "click-tab-2": _hidden_link("link"),
    "click-test": lambda page: _click(page.all("button")[0]),
    "click-test-2": _named_button,
    "choose-list": _listed,
    "enter-password": lambda page: _filled(page, [page.target, page.target]),
    "enter-text": lambda page: _filled(page, [page.target]),
    "enter-text-2": _text_in_case,
    "find-word": _word,
    "focus-text": _nth_textbox,
    "focus-text-2": _nth_textbox,
    "login-user": _login("login"),
    "login-user-popup": _login("ok"),
    "navigate-tree": _in_tree,
    "phone-book": _in_phone_book,
    "read-table": _in_table,
    "search-engine": _searched,
    "simple-arithmetic": _sum,
    "use-autocomplete-nodelay": _completed,
}
"""Experts by task."""
