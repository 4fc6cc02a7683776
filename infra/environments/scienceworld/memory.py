"""Memory of a game, from ScienceWorld's text: the last focus, and what was in which room.

The focus decides what wins, and a look around does not show it.
"""

import re

from infra.environments.scienceworld.view import NOTHING, room_of, room_text

_FORGOTTEN = "You reset the goal progress and focus."
_FOCUSED = re.compile(r"^You focus on the (.+)\.$")


class Memory:
    """Memory of one game."""

    def __init__(self) -> None:
        """Start with no focus and no room seen."""
        self._focus = NOTHING
        self._rooms: dict[str, str] = {}

    def learn(self, said: str, look: str) -> None:
        """Learn from an answer of ScienceWorld, and from a free look around."""
        if focused := _FOCUSED.match(said.strip()):
            self._focus = focused[1]
        elif said.strip() == _FORGOTTEN:
            self._focus = NOTHING
        if room := room_of(look):
            self._rooms[room] = room_text(look)

    @property
    def lines(self) -> dict[str, str]:
        """Lines of the state: the focus, then one for each room in the order in which they were seen."""
        return {"focus": self._focus, **self._rooms}
