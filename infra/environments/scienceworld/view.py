"""ScienceWorld's text as an abstract state: its last answer, and what is known of each room (paper, section 4.1).

    - said: You move to the kitchen.
    - room: kitchen
    - have: dove egg; orange
    - focus: dove egg
    - outside: axe; fire pit; fountain (water); door to foundry; door to kitchen
    - kitchen: cupboard closed; sink off; table (glass cup); door to bathroom closed; door to outside

A room has its line from the first visit on (memory.py), so that an experience model has to write it only once. The more
than five hundred actions that ScienceWorld would accept are not shown. An action that it does not know changes only its
answer.
"""

import re
from collections.abc import Mapping

from schemas.state_text import text_of

NOTHING = "nothing"
REFUSED = ("No known action matches that input", "It's not clear", "Ambiguous request", "Unknown action")
"""Prefixes of its answers to an action that it does not know."""
_ALWAYS_THERE = ("agent", "air")
_ROOM = re.compile(r"^This (?:room|outside location) is called the ([^.]+)\.")
_DOORS = "You also see:"
_DOOR = re.compile(r"^door to the (.+) \(that is (?:open|(closed))\)$")
DIVIDED_BY = "; "
_PLAINER = tuple(
    (re.compile(pattern), plainer)
    for pattern, plainer in (
        (r"\b[Aa]n? (?=\w)|\bthe (?=agent)", ""),
        (r"\bsubstance called ", ""),
        (r" \(containing nothing\)", ""),
        (r"\(containing ", "("),
        (r", which is (?:turned )?", " "),
        (r"\. The [^.:]+ door is (open|closed)", r" \1"),
        (r"\. [OI]n the [^.:]+ is: nothing\.", ""),
    )
)
_INNERMOST = re.compile(r"\. [OI]n the [^.:]+ (?:is|you see): ([^.:]*)\.(?! ?[OI]n the)")
"""Pattern of the things in or on a thing, if they hold nothing further."""


def room_of(look: str) -> str:
    """Return the room that a free look around shows; empty if it shows none."""
    room = _ROOM.match(look)
    return room[1] if room else ""


def room_text(look: str) -> str:
    """Return what a free look around shows, things first and then doors, each sorted.

    Sorting is needed because the game lists them in any order.
    """
    things, _, doors = look.partition(_DOORS)
    ways = [_DOOR.sub(lambda door: f"door to {door[1]} {door[2] or ''}".rstrip(), way) for way in _listed(doors)]
    return DIVIDED_BY.join([*_listed(things), *ways]) or NOTHING


def state_text(said: str, look: str, inventory: str, remembered: Mapping[str, str]) -> str:
    """Return the state of a game.

    Args:
        said: Answer of ScienceWorld, verbatim.
        look: Free look around.
        inventory: Free look at what is in hand.
        remembered: Line of the focus, and a line for each room that is known.
    """
    heard = "You look around." if room_of(said) else " ".join(said.split())
    held = DIVIDED_BY.join(_listed(inventory))
    return text_of(
        {"said": heard or NOTHING, "room": room_of(look) or "unknown", "have": held or NOTHING, **remembered}
    )


def _listed(text: str) -> list[str]:
    """Return the items after the first line, in plain words and without those that are everywhere."""
    things = sorted(plainly(line) for line in text.split("\n")[1:])
    return [thing for thing in things if thing and thing not in _ALWAYS_THERE]


def plainly(thing: str) -> str:
    """Return the description of a thing in fewer words.

    Example: `a table. On the table is: a jug (containing nothing).` becomes `table (jug)`.
    """
    plain = " ".join(thing.split())
    for pattern, plainer in _PLAINER:
        plain = pattern.sub(plainer, plain)
    while (plainer := _INNERMOST.sub(r" (\1)", plain)) != plain:
        plain = plainer
    return plain.replace(" ,", ",").replace(" )", ")").rstrip(" .")
