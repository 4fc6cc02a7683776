"""Sessions of people in WebShop, a line for each page that they loaded; their actions follow from the pages."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

from tasks.logs.log_kind import Part, Recorded
from tasks.logs.shapes.in_words import Message, as_text

TITLE, SPANS_FILES = "Sessions of people in WebShop", False
_PAGES = ("index", "search_results", "item_page", "item_sub_page", "done")
_UNSEEN = ("page", "keywords", "my_thing")
"""Fields of a page that it does not show, or that are said otherwise."""
_NEIGHBOURS = {1: "click[next >]", -1: "click[< prev]"}
"""Actions that lead from one page of results to another, by the difference of their numbers."""
_AGAIN = "pages that were loaded again, which were left out"


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a page of a session."""
    goal = record.get("goal")
    return record.get("page") in _PAGES and isinstance(goal, dict) and "instruction_text" in goal


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the page as a part of its session.

    Raises:
        ValueError: its address names none.
    """
    named = _path(record)[0 if record["page"] == "index" else 1 :]
    if not named:
        raise ValueError(f"the address {record['url']} names no session")
    return [(named[0], record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the session; one that does not end with a purchase was given up.

    Raises:
        ValueError: nothing on a page leads to the one after it.
    """
    pages = [parts[0], *(after for before, after in pairwise(parts) if _shown(after) != _shown(before))]
    actions = [_action(before, after) for before, after in pairwise(pages)]
    messages = [_seen(pages[0])]
    for action, page in zip(actions, pages[1:], strict=True):
        messages += [{"role": "assistant", "content": action}, _seen(page)]
    asked, last = pages[0]["goal"]["instruction_text"], pages[-1]
    verdict = {"reward": last["reward"]} if last["page"] == "done" else {"success": False, "truncated": True}
    fields = {"instruction": asked, "source": "WebShop", "trajectory_id": parts_of(last)[0][0], **verdict}
    yield Recorded(messages, fields, (_AGAIN,) if len(pages) < len(parts) else ())


def _path(page: dict[str, Any]) -> list[str]:
    return [unquote(one) for one in urlsplit(page["url"]).path.split("/") if one]


def _content(page: dict[str, Any]) -> dict[str, Any]:
    return page.get("content") or {}


def _shown(page: dict[str, Any]) -> tuple[str, str, str]:
    """Return what tells a page from another of its session."""
    return page["page"], _tab(page), json.dumps(_content(page), sort_keys=True)


def _tab(page: dict[str, Any]) -> str:
    """Return the tab that a page about an item shows; empty: none."""
    return _path(page)[-2].lower() if page["page"] == "item_sub_page" else ""


def _seen(page: dict[str, Any]) -> Message:
    """Return a page in words, as far as the log knows it: not its text."""
    content = _content(page)
    lines = {"page": page["page"], "tab": _tab(page)}
    if page["page"] == "search_results":
        lines |= {"keywords": _words(content["keywords"]), "number": str(content["page"])}
    lines |= {name: as_text(value) for name, value in content.items() if name not in _UNSEEN}
    return {"role": "user", "content": "\n".join(f"{name}: {text}" for name, text in lines.items() if text)}


def _words(keywords: list[str] | str) -> str:
    return keywords if isinstance(keywords, str) else " ".join(keywords)


def _action(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return the action on a page after which another came.

    Raises:
        ValueError: nothing on the page leads there.
    """
    old, new = _content(before), _content(after)
    same_item, same_search = (str(old.get(name)) == str(new.get(name)) for name in ("asin", "keywords"))
    match before["page"], after["page"]:
        case "index", "search_results" if int(new["page"]) == 1:
            action = f"search[{_words(new['keywords'])}]"
        case "search_results" | "item_page" | "item_sub_page", "index":
            action = "click[back to search]"
        case "search_results", "search_results" if same_search and _step(old, new) in _NEIGHBOURS:
            action = _NEIGHBOURS[_step(old, new)]
        case "search_results", "item_page" if new["asin"] in old["search_result_asins"]:
            action = f"click[{new['asin'].lower()}]"
        case ("item_page", "search_results") if same_search:
            action = "click[< prev]"
        case ("item_sub_page", "item_page") if same_item:
            action = "click[< prev]"
        case "item_page", "item_sub_page" if same_item:
            action = f"click[{_tab(after)}]"
        case "item_page", "item_page" if same_item and len(chosen := _chosen(old, new)) == 1:
            action = f"click[{chosen[0].lower()}]"
        case "item_page", "done" if same_item:
            action = "click[buy now]"
        case page, following:
            why = "a page between them is missing, or the browser's own buttons were used"
            raise ValueError(f"nothing on the page {page} leads to {following}: {why}")
    return action


def _step(old: dict[str, Any], new: dict[str, Any]) -> int:
    return int(new["page"]) - int(old["page"])


def _chosen(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the options of an item that are chosen on one page and not on the one before it."""
    return [value for name, value in new["options"].items() if old["options"].get(name) != value]
