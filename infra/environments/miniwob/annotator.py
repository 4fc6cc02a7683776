"""Reasoning traces from what the pages say: the offline teacher (paper, section 4.2 and C.1).

A trace names the thing that is acted on, and what else a choice lay between: the other links or buttons, and before anything
that may end a task what was filled in. Of each it says whether it is asked for by its name, which is what most verdicts come
down to: a small model finds a word again more easily than it compares two sentences, and learns to look for it only where the
answer is mostly no.

Example, of `click [11]`: [11] button: Login, not asked. [7] textbox: keneth, asked. [10] textbox: 91YP, asked. wins.

Differs: the paper asks a strong teacher LLM; models/teacher.py does that.
"""

import re
from collections.abc import Mapping, Sequence

from infra.environments.miniwob.view import EMPTY
from infra.environments.verdicts import verdict
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_TARGET = re.compile(r"^\w+ (\[\d+\])")
_AFTER_ITS_NAME = re.compile(r"(?:, (?:un)?checked)?(?:, focused)?$")
_AFTER_A_CHOICE = re.compile(r" of .*$")
"""Of a thing, in its line's value: see Element.value."""
_A_PLACE = re.compile(r"\b\d+(?:st|nd|rd|th)\b")
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_ALSO_CALLED = {"Close": "x"}
"""Instructions say what a button shows, pages what it is for."""
_FILLED_IN = ("textbox", "checkbox", "radio", "combobox")
"""Roles that hold something, and that end no task by being filled."""
_CHOSEN = ("link", "button")
"""Roles of which one is the right one."""


class MiniwobAnnotator:
    """Explains every transition of a MiniWoB++ trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn; see the port."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Evidence and verdict for one transition."""
    lines = lines_of(turn.state)
    target = _target(turn.action, lines)
    if not target:
        return f"no such thing here. {verdict(turn)}."
    evidence = [f"{name}: {lines[name]}{_asked(name, lines, task.instruction)}" for name in _weighed(target, lines)]
    return ". ".join([*evidence, verdict(turn)]) + "."


def _weighed(target: str, lines: Mapping[str, str]) -> list[str]:
    """The names of the lines that matter to what is done to one of them, which comes first."""
    if target.endswith(_FILLED_IN):
        return [target]
    rivals = [name for name in lines if _role(name) == _role(target) and name.endswith(_CHOSEN)]
    return list(dict.fromkeys([target, *rivals, *(name for name in lines if name.endswith(_FILLED_IN))]))


def _asked(line: str, lines: Mapping[str, str], instruction: str) -> str:
    """Whether the instruction has the name of a line, or if it has none its place, where the instruction speaks of places."""
    after = _AFTER_A_CHOICE if line.endswith("combobox") else _AFTER_ITS_NAME
    name = after.sub("", lines[line])
    if name != EMPTY:
        return f", {_flag(_ALSO_CALLED.get(name, name), instruction)}"
    place = _place(line, lines)
    return f", {place}, {_flag(place, instruction)}" if _A_PLACE.search(instruction) else ""


def _flag(name: str, instruction: str) -> str:
    return "asked" if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", instruction, re.IGNORECASE) else "not asked"


def _place(line: str, lines: Mapping[str, str]) -> str:
    """Among the lines of its role: 1st, 2nd."""
    place = [other for other in lines if _role(other) == _role(line)].index(line) + 1
    return f"{place}{_ENDINGS.get(place, 'th')}"


def _role(line: str) -> str:
    return line.partition("] ")[2]


def _target(action: str, lines: dict[str, str]) -> str:
    """The name of the line that an action is about, which for a key is where the focus is; empty if there is none."""
    if action.startswith("press "):
        return next((name for name, value in lines.items() if value.endswith(", focused")), "")
    match = _TARGET.match(action)
    return next((name for name in lines if match and name.startswith(f"{match[1]} ")), "")
