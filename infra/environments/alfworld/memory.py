"""What an agent knows of a room from what ALFWorld has told it: what was seen where, and what was done to things.

A dream that does not know this invents the contents of a drawer anew each time it is opened.
"""

import re

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

    def __init__(self) -> None:
        """Nothing known yet."""
        self._known: dict[str, list[str]] = {}
        """What is in a place, or what a thing has become, in the order in which it was found out."""

    def hear(self, said: str) -> None:
        """Learn from what ALFWorld says."""
        for on, within, things in _SEEN.findall(said):
            self._known[on or within] = _THING.findall(things)
        for place in _CLOSED.findall(said):
            self._known.setdefault(place, ["closed"])
        for thing, place in _TAKEN.findall(said):
            self._known[place] = [one for one in self._known.get(place, []) if one != thing]
        for thing, place in _MOVED.findall(said):
            self._known[place] = [*self._known.get(place, []), thing]
        for verb, thing in _CHANGED.findall(said):
            became = _BECAME[verb]
            others = [one for one in self._known.get(thing, []) if one not in (became, _UNDONE_BY.get(became))]
            self._known[thing] = [*others, became]

    @property
    def lines(self) -> dict[str, str]:
        """A line for each place and for each thing that was changed."""
        return {name: ", ".join(known) or "nothing" for name, known in self._known.items()}
