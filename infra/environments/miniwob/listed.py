"""What a page of MiniWoB++ does not accept: what is no action, or not about what is there."""

import re

from infra.environments.miniwob.view import Element, action_of, options_in
from schemas.state_text import lines_of

_NAMED = re.compile(r"\[(\d+)\] (.+)")
"""Number and role of a thing, in the name of its line; what is dreamt may have other lines, too."""


class StateLists:
    """See the port."""

    def accepts(self, state: str, action: str) -> bool | None:
        """False of what cannot be done on this page; what can be done may still do nothing."""
        named = [(_NAMED.fullmatch(name), value) for name, value in lines_of(state).items()]
        elements = [
            Element(int(name[1]), name[2], "", options=tuple(options_in(value))) for name, value in named if name
        ]
        return None if action_of(action, elements) else False

    def refused(self, state: str) -> str:
        """Nothing happens."""
        return state
