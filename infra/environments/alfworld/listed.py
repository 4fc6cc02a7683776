"""What a state of ALFWorld says that it accepts: its `can`, and to go to any place of the room."""

from infra.environments.alfworld.view import GO, REFUSED, is_accepted, places_in
from schemas.state_text import lines_of, text_of


class StateLists:
    """See the port."""

    def accepts(self, state: str, action: str) -> bool | None:
        """Whether an action is listed.

        Of places that are close together one is at several at once and can still go to some: of these, nothing is said.
        """
        lines = lines_of(state)
        if action in {GO + place for place in places_in(lines)}:
            return None
        return is_accepted(lines, action)

    def refused(self, state: str) -> str:
        """Only what was said last is new."""
        return text_of(lines_of(state) | {"saw": REFUSED})
