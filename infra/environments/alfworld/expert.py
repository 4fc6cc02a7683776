"""What ALFWorld's hand-coded expert would do, and what ours does where that one cannot go on."""

import re
from collections.abc import Mapping, Sequence

_STUCK = "look"
"""What the expert does when it knows nothing better."""
_NUMBER = re.compile(r" \d+$")


def next_action(planned: str, accepted: Sequence[str], held: str, asked: Mapping[str, str]) -> str:
    """ALFWorld's expert looks around for ever if its hands are full of the wrong thing: it is carried on and put down.

    Where it was to be put, as if it were what is asked for: such mistakes are what an experience model must have seen.

    Args:
        planned: By ALFWorld's expert.
        accepted: Actions, in order.
        held: What is in the agent's hands; empty if nothing is.
        asked: The game's object_target, and its parent_target, which is empty where nothing is to be put anywhere.
    """
    if planned != _STUCK or not held or _kind(held) == asked["object_target"]:
        return planned
    where_asked = [one for one in accepted if _kind(one).endswith(f" {asked['parent_target']}")]
    there = [one for one in where_asked if one.startswith(("move ", "open "))]
    on_the_way = [one for one in where_asked if one.startswith("go to ")]
    here = [one for one in accepted if one.startswith("move ")]
    return next(iter([*there, *on_the_way, *here]), planned)


def _kind(numbered: str) -> str:
    """Of a thing, or of the last thing of an action."""
    return _NUMBER.sub("", numbered)
