"""ScienceWorld's text as an abstract state: what it said last, and what is in sight and in hand (paper, section 4.1).

    - said: You move to the kitchen.
    - room: kitchen
    - see: a cupboard. The cupboard door is closed; a sink, which is turned off
    - doors: A door to the hallway (that is open)
    - have: an orange

The five hundred and more actions that it would accept are not shown; what it does not know changes nothing but what it says.
"""

import re
from collections.abc import Iterable, Mapping

from schemas.state_text import text_of

REFUSED = ("No known action matches that input", "It's not clear", "The action is ambiguous")
"""How it begins to answer what it does not know."""
ALWAYS = ("look around", "inventory", "wait1")
"""Actions that it always accepts."""
_ALWAYS_THERE = ("the agent", "a substance called air")
_ROOM = re.compile(r"^This (?:room|outside location) is called the ([^.]+)\.")
_DIVIDED_BY = "; "


def state_text(said: str, look: str, inventory: str) -> str:
    """The state of a game that said this last, and whose free looks around and into the inventory say that."""
    room = _ROOM.match(look)
    things, _, doors = look.partition("You also see:")
    lines = {
        "said": "You look around." if _ROOM.match(said) else _one_line(said),
        "room": room[1] if room else "unknown",
        "see": _listed(things),
        "doors": _listed(f"\n{doors.strip()}"),
        "have": _listed(inventory),
    }
    return text_of({name: value for name, value in lines.items() if value})


def _listed(text: str) -> str:
    """What follows the first line, without what is everywhere; sorted, as the game itself says it in any order."""
    things = sorted(_one_line(line) for line in text.split("\n")[1:])
    return _DIVIDED_BY.join(thing for thing in things if thing and thing not in _ALWAYS_THERE)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def things_about(action: str, lines: Mapping[str, str]) -> Iterable[str]:
    """What a state says of the things that an action names."""
    words = set(action.lower().split()) - _SMALL_WORDS
    for name in ("see", "have", "doors"):
        for thing in lines.get(name, "").split(_DIVIDED_BY):
            if words & set(re.findall(r"[a-z]+", thing.lower())):
                yield f"{name}: {thing}"


_SMALL_WORDS = set(
    "a an the in on to of with into from look at open close go pick up put down move use pour focus".split()
)
