"""What an agent knows of a room from what ALFWorld has told it: what was seen where, and what was done to things.

A dream that does not know this invents the contents of a drawer anew each time it is opened, and a small policy that is not
told where it has not been goes in circles.
"""

import re
from collections.abc import Iterable

NOTHING = "nothing"
IS = "is "
"""How that which is known of a thing begins, and of no place."""
_UNSEEN = "unseen"
"""What is known of a place before one has been there."""
_SEEN = re.compile(r"(?:On the (\w+ \d+)|The (\w+ \d+) is open\. In it), you see ([^.]*)\.")
_CLOSED = re.compile(r"The (\w+ \d+) is closed\.")
_TAKEN = re.compile(r"You pick up the (\w+ \d+) from the (\w+ \d+)\.")
_MOVED = re.compile(r"You move the (\w+ \d+) to the (\w+ \d+)\.")
_CHANGED = re.compile(r"You (heat|cool|clean|sliced) the (\w+ \d+) (?:using|with)")
_THING = re.compile(r"\w+ \d+")
_BECAME = {"heat": "heated", "cool": "cooled", "clean": "cleaned", "sliced": "sliced"}
_UNDONE_BY = {"heated": "cooled", "cooled": "heated"}


class Memory:
    """Of one game."""

    def __init__(self, places: Iterable[str]) -> None:
        """Nothing known yet but that there are these places."""
        self._within = {place: [_UNSEEN] for place in places}
        self._became: dict[str, list[str]] = {}
        """What was done to each thing, in order."""

    def hear(self, said: str) -> None:
        """Learn from what ALFWorld says."""
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
        """A line for each place, then one for each thing that something was done to."""
        places = {place: ", ".join(within) or NOTHING for place, within in self._within.items()}
        return places | {thing: IS + ", ".join(became) for thing, became in self._became.items()}
