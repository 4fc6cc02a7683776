"""Memory of a room, from ALFWorld's text: what was seen where, and what was done to each thing.

Without it, an experience model invents the contents of a drawer anew each time it is opened, and a small policy does
not know where it has not been, and goes in circles.
"""

import re
from collections.abc import Iterable

NOTHING = "nothing"
IS = "is "
"""Prefix of a thing's line; no place's line has it."""
_UNSEEN = "unseen"
"""Content of a place that the agent has not visited yet."""
_SEEN = re.compile(r"(?:On the (\w+ \d+)|The (\w+ \d+) is open\. In it), you see ([^.]*)\.")
_CLOSED = re.compile(r"The (\w+ \d+) is closed\.")
_TAKEN = re.compile(r"You pick up the (\w+ \d+) from the (\w+ \d+)\.")
_MOVED = re.compile(r"You move the (\w+ \d+) to the (\w+ \d+)\.")
_CHANGED = re.compile(r"You (heat|cool|clean|sliced) the (\w+ \d+) (?:using|with)")
_THING = re.compile(r"\w+ \d+")
_BECAME = {"heat": "heated", "cool": "cooled", "clean": "cleaned", "sliced": "sliced"}
_UNDONE_BY = {"heated": "cooled", "cooled": "heated"}


class Memory:
    """Memory of one game."""

    def __init__(self, places: Iterable[str]) -> None:
        """Start with these places and no further knowledge."""
        self._within = {place: [_UNSEEN] for place in places}
        self._became: dict[str, list[str]] = {}
        """Changes of each thing, in order."""

    def hear(self, said: str) -> None:
        """Learn from a text of ALFWorld."""
        for on, within, things in _SEEN.findall(said):
            self._within[on or within] = _THING.findall(things)
        for place in _CLOSED.findall(said):
            if self._within.get(place) == [_UNSEEN]:
                self._within[place] = ["closed"]
        for thing, place in _TAKEN.findall(said):
            self._within[place] = self._without(thing, place)
        for thing, place in _MOVED.findall(said):
            self._within[place] = [*self._without(_UNSEEN, place), thing]
        for verb, thing in _CHANGED.findall(said):
            became = _BECAME[verb]
            others = [one for one in self._became.get(thing, []) if one not in (became, _UNDONE_BY.get(became))]
            self._became[thing] = [*others, became]

    def _without(self, one: str, place: str) -> list[str]:
        return [other for other in self._within.get(place, []) if other != one]

    @property
    def lines(self) -> dict[str, str]:
        """Lines of the state: one for each place, then one for each thing that was changed."""
        places = {place: ", ".join(within) or NOTHING for place, within in self._within.items()}
        return places | {thing: IS + ", ".join(became) for thing, became in self._became.items()}
