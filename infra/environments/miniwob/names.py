"""Names on a page that may be replaced, because only this task uses them.

They are the names of links and choices, and the texts to be typed.
"""

import re
from collections.abc import Iterator, Mapping

from infra.environments.miniwob.view import name_in, options_in, role_of

_QUOTED = re.compile(r'"([^"]{3,})"')
_NAMED = ("link", "radio", "checkbox", "option")
_A_NAME = re.compile(r"(?=.{3,}).*[A-Za-z].*")
"""Pattern of a name that may be replaced; a shorter one may appear anywhere with another meaning."""


def names_on(instruction: str, lines: Mapping[str, str]) -> list[str]:
    """Return the texts that an instruction quotes, and the names of links, choices and options.

    If a button is quoted, all buttons are included: a single one with a new name would stand out.

    Args:
        instruction: Instruction of the task.
        lines: Lines of the first state.
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
