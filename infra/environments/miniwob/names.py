"""Names on a page that this task alone has, so that others would do as well: of links, choices and what is to be typed."""

import re
from collections.abc import Iterator, Mapping

from infra.environments.miniwob.view import name_in, options_in, role_of

_QUOTED = re.compile(r'"([^"]{3,})"')
_NAMED = ("link", "radio", "checkbox", "option")
_A_NAME = re.compile(r"(?=.{3,}).*[A-Za-z].*")
"""What is shorter may stand anywhere, with another meaning."""


def names_on(instruction: str, lines: Mapping[str, str]) -> list[str]:
    """What an instruction puts between quotation marks, and what things that go by a name of their own are called.

    All buttons are among these where one of them is quoted: were it alone renamed, it would be known by that.

    Args:
        instruction: Of the task.
        lines: Of the first state.
    """
    quoted = _QUOTED.findall(instruction)
    named = [*_called(lines, *_NAMED), *(option for value in lines.values() for option in options_in(value))]
    buttons = list(_called(lines, "button"))
    if set(quoted) & set(buttons):
        named += buttons
    return sorted(set(filter(_A_NAME.fullmatch, [*quoted, *named])))


def _called(lines: Mapping[str, str], *roles: str) -> Iterator[str]:
    for line, value in lines.items():
        if role_of(line) in roles:
            yield name_in(value)
