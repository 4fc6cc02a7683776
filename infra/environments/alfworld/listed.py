"""Actions that an ALFWorld state accepts: those in its `can` line, and those that always work."""

from infra.environments.alfworld.view import GO, REFUSED, is_accepted, places_in
from schemas.state_text import lines_of, text_of


class StateLists:
    """Reader of the actions that ALFWorld's states list; see AdmissibleActions."""

    def accepts(self, state: str, action: str) -> bool | None:
        """Return whether the state lists an action; None for going to a place of the room.

        The agent can be at several places at once, if they are close together, and still go to some of them.
        """
        lines = lines_of(state)
        if action in {GO + place for place in places_in(lines)}:
            return None
        return is_accepted(lines, action)

    def refused(self, state: str) -> str:
        """Return the state after a refused action, in which only the `saw` line is new."""
        return text_of(lines_of(state) | {"saw": REFUSED})
