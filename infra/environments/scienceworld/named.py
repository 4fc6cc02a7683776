"""Descriptions of the things that an action names, from a state of ScienceWorld."""

import re
from collections.abc import Iterable, Iterator, Mapping

from infra.environments.scienceworld.view import DIVIDED_BY

_BETWEEN_NAMES = re.compile(r" (?:at|from|in|into|of|on|to|with) ")
_NO_NAMES = frozenset(
    "a an around close containing door down focus go inventory look move open pick pour put reset task teleport the up use "
    "wait wait1".split()
)


def things_about(action: str, lines: Mapping[str, str]) -> Iterator[str]:
    """Yield the descriptions of the things that an action names, in the room and in hand, or that there is none."""
    things = [*lines.get(lines.get("room", ""), "").split(DIVIDED_BY), *lines.get("have", "").split(DIVIDED_BY)]
    for name in _BETWEEN_NAMES.split(action):
        words = [word for word in name.split() if word not in _NO_NAMES]
        if words:
            yield from called(words, things) or [f"no {' '.join(words)}"]


def called(words: Iterable[str], things: Iterable[str]) -> list[str]:
    """Return the things whose description has all of these words."""
    return [thing for thing in things if set(words) <= set(re.findall(r"\w+", thing))]
