"""Next action of ALFWorld's hand-coded expert, and of ours where that one is stuck."""

import re
from collections.abc import Mapping, Sequence

_STUCK = "look"
"""Action of ALFWorld's expert when it knows nothing better."""
_NUMBER = re.compile(r" \d+$")


def next_action(planned: str, accepted: Sequence[str], held: str, asked: Mapping[str, str]) -> str:
    """Return the planned action, or one that helps ALFWorld's expert out if its hands are full of the wrong thing.

    That expert would look around forever. Instead, the thing is put where the wanted one belongs, as if it were that
    one, or else here: an experience model must have seen these mistakes.

    Args:
        planned: Action that ALFWorld's expert plans.
        accepted: Accepted actions, in order.
        held: Thing in the agent's hands; empty if there is none.
        asked: The game's object_target, and its parent_target, which is empty if nothing has to be put anywhere.
    """
    if planned != _STUCK or not held or _kind(held) == asked["object_target"]:
        return planned
    where_asked = [one for one in accepted if _kind(one).endswith(f" {asked['parent_target']}")]
    there = [one for one in where_asked if one.startswith(("move ", "open "))]
    on_the_way = [one for one in where_asked if one.startswith("go to ")]
    here = [one for one in accepted if one.startswith("move ")]
    return next(iter([*there, *on_the_way, *here]), planned)


def _kind(numbered: str) -> str:
    """Return a thing, or an action about a thing, without the last number."""
    return _NUMBER.sub("", numbered)
