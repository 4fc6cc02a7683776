"""Stand-in for BrowserGym: a shop with a cart, given as Chrome's accessibility tree, that takes BrowserGym's calls."""

import re
from typing import Any

import gymnasium


def _node(bid: str | None, role: str, name: str, value: str = "", **properties: bool) -> dict[str, Any]:
    """Return a node as Chrome reports it and BrowserGym marks it."""
    told = [{"name": key, "value": {"type": "boolean", "value": on}} for key, on in properties.items()]
    node = {"role": {"value": role}, "name": {"value": name}, "value": {"value": value}, "properties": told}
    return node if bid is None else {**node, "browsergym_id": bid}


class Shop(gymnasium.Env[Any, Any]):
    """Shop in which a lamp is searched for, then put into the cart."""

    observation_space = gymnasium.spaces.Dict()
    action_space = gymnasium.spaces.Text(500)

    def __init__(self, number: int) -> None:
        self._wanted, self._searched = f"lamp {number}", ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._searched = ""
        return self._page(), {}

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if filled := re.fullmatch(r"fill\('b2', '(.+)'\)", action):
            self._searched = filled[1]
        if action == "click('b3')":
            won = self._searched == self._wanted
            return self._page(), float(won), True, False, {}
        return self._page("Timeout" if action.startswith("hover") else ""), 0.0, False, False, {}

    def _page(self, error: str = "") -> dict[str, Any]:
        nodes = [
            _node(None, "RootWebArea", "Shop"),
            {**_node("b1", "paragraph", ""), "nodeId": "1"},
            {**_node(None, "generic", ""), "nodeId": "2", "parentId": "1"},
            {**_node(None, "StaticText", "Lamps\n and more"), "nodeId": "3", "parentId": "2"},
            _node("b2", "textbox", "Search", self._searched, focused=True),
            {**_node("b3", "button", "Add to Cart", disabled=False), "nodeId": "4"},
            {**_node(None, "StaticText", "Add to Cart"), "nodeId": "5", "parentId": "4"},
        ]
        goal = f"Find {self._wanted} and add it to the cart."
        return {"goal": goal, "url": "http://shop/", "axtree_object": {"nodes": nodes}, "last_action_error": error}


for _number in range(6):
    gymnasium.register(f"Shop{_number}-v0", entry_point=Shop, kwargs={"number": _number}, disable_env_checker=True)
