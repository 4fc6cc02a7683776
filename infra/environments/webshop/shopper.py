"""A shopper by rule: search for what is asked, take the first product, choose the options that are asked for, buy.

It sees what the agent sees, and often buys the wrong thing: the shop keeps what it wants to itself.
"""

import re
from collections.abc import Sequence

from infra.environments.webshop.view import clickables, options, products

_AROUND_WHAT_IS_ASKED = re.compile(
    r"^\W*(?:find me|i am looking for|i need|i want)\s+|,? and price lower than .*$", re.I
)


def next_action(instruction: str, lines: dict[str, str], earlier: Sequence[str]) -> str:
    """What the rule does in a state, after these actions."""
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
    """What to search for."""
    return _AROUND_WHAT_IS_ASKED.sub("", instruction).strip(" .") or instruction
