"""Actions that a page of MiniWoB++ does not accept: malformed ones, and those about elements that are not there."""

import re

from infra.environments.miniwob.view import Element, action_of, options_in
from schemas.state_text import lines_of

_NAMED = re.compile(r"\[(\d+)\] (.+)")
"""Number and role of an element, in the name of its line; predicted states may have other lines, too."""


class StateLists:
    """Reader of the actions that a page makes possible; see AdmissibleActions."""

    def accepts(self, state: str, action: str) -> bool | None:
        """Return False for an action that is impossible on this page, or else None: it may still do nothing."""
        named = [(_NAMED.fullmatch(name), value) for name, value in lines_of(state).items()]
        elements = [
            Element(int(name[1]), name[2], "", options=tuple(options_in(value))) for name, value in named if name
        ]
        return None if action_of(action, elements) else False

    def refused(self, state: str) -> str:
        """Return the same state, because nothing happens."""
        return state
