"""Shopper by rule: search for the request, take the first product, choose the requested options, buy.

It sees what the agent sees, and often buys the wrong product, because the shop does not show all that it wants.
"""

import re
from collections.abc import Sequence

from infra.environments.webshop.view import clickables, options, products

_AROUND_WHAT_IS_ASKED = re.compile(
    r"^\W*(?:find me|i am looking for|i need|i want)\s+|,? and price lower than .*$", re.I
)


def next_action(instruction: str, lines: dict[str, str], earlier: Sequence[str]) -> str:
    """Return the rule's action in a state, after these earlier actions."""
    if "search" in lines:
        return f"search[{keywords(instruction)}]"
    if found := products(lines):
        return f"click[{found[0]}]"
    wanted = [one for one in options(lines) if one in instruction.lower() and f"click[{one}]" not in earlier]
    if wanted:
        return f"click[{wanted[0]}]"
    possible = clickables(lines)
    return f"click[{possible[0]}]" if possible and "buy now" not in possible else "click[buy now]"


def keywords(instruction: str) -> str:
    """Return the words of an instruction to search for."""
    return _AROUND_WHAT_IS_ASKED.sub("", instruction).strip(" .") or instruction
