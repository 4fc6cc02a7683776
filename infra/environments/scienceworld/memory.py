"""What an agent knows of a game from what ScienceWorld has told it: what it focused on last, and what was in which room.

What is focused on decides what wins, and no look around tells it.
"""

import re

from infra.environments.scienceworld.view import NOTHING, room_of, room_text

_FORGOTTEN = "You reset the goal progress and focus."
_FOCUSED = re.compile(r"^You focus on the (.+)\.$")


class Memory:
    """Of one game."""

    def __init__(self) -> None:
        """Nothing focused on, no room seen."""
        self._focus = NOTHING
        self._rooms: dict[str, str] = {}

    def learn(self, said: str, look: str) -> None:
        """Learn from what ScienceWorld says, and from a free look around."""
        if focused := _FOCUSED.match(said.strip()):
            self._focus = focused[1]
        elif said.strip() == _FORGOTTEN:
            self._focus = NOTHING
        if room := room_of(look):
            self._rooms[room] = room_text(look)

    @property
    def lines(self) -> dict[str, str]:
        """What is focused on, then a line for each room in the order in which they were seen."""
        return {"focus": self._focus, **self._rooms}
